"""Made checkouts that are built like Bridge's: a submodule, two pins, a lock file, a README that says how to sync."""

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from lossbisect.cli import main
from tests.bisect.support import commit, git

SUBMODULE = "3rdparty/Megatron-LM"
README = """# Bridge
./scripts/switch_mcore.sh status   # Show current commit
./scripts/switch_mcore.sh dev      # Switch to dev; then run: uv sync
./scripts/switch_mcore.sh main     # Switch back; then run: uv sync --locked
"""


@dataclass(frozen=True)
class Called:
    """What a call of the command line gave."""

    returncode: int
    stdout: str
    stderr: str


def call(*arguments: str) -> Called:
    """Call the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Called(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@dataclass(frozen=True)
class Made:
    """A Bridge checkout and what it was made of.

    Attributes:
        root: The checkout.
        server: The Megatron-LM that it was cloned from, with branches ``main`` and ``dev``.
        main: The commits on main, oldest first; Bridge wants the second to last.
        dev: The dev pin, which the checkout's submodule has.
        pull: The newest commit of pull request 7, and its whole history, only on the server.
    """

    root: Path
    server: Path
    main: list[str]
    dev: str
    pull: str

    @property
    def submodule(self) -> Path:
        """The submodule's working tree."""
        return self.root / SUBMODULE


def package_info(version: str) -> str:
    """The version file of either project."""
    major, minor, patch = version.split(".")
    return f"MAJOR = {major}\nMINOR = {minor}\nPATCH = {patch}\nPRE_RELEASE = ''\n"


def mcore_files(version: str = "0.20.0", torch: str = "2.13.0") -> dict[str, str]:
    """Megatron-LM's files that pins are read from."""
    return {
        "megatron/core/__init__.py": "",
        "megatron/core/package_info.py": package_info(version),
        "pyproject.toml": (
            '[project]\nname = "megatron-core"\nrequires-python = ">=3.10"\n'
            'dependencies = ["torch>=2.6.0", "numpy"]\n'
            '[project.optional-dependencies]\nte = ["transformer-engine[pytorch,core_cu13]"]\n'
            '[tool.uv.sources]\ntransformer-engine = { git = "g", rev = "4329ff84" }\n'
        ),
        "uv.lock": (
            f'version = 1\n\n[[package]]\nname = "torch"\nversion = "{torch}"\n\n'
            '[[package]]\nname = "transformer-engine"\nversion = "2.17.1+4329ff84"\n'
        ),
        "docker/.ngc_version.dev": "registry/nvidia/pytorch:26.06-py3",
    }


def bridge_files(version: str = "0.7.0", torch: str = "2.13.0") -> dict[str, str]:
    """Bridge's files that pins are read from, and what a training needs."""
    return {
        "src/megatron/bridge/__init__.py": "",
        "src/megatron/bridge/package_info.py": package_info(version),
        "scripts/training/run_recipe.py": "",
        "README.md": README,
        ".gitignore": "nemo_experiments/\n",
        "pyproject.toml": (
            '[project]\nname = "megatron-bridge"\nrequires-python = ">=3.10"\ndependencies = ["torch>=2.6.0"]\n'
        ),
        "uv.lock": (
            f'version = 1\n\n[[package]]\nname = "torch"\nversion = "{torch}"\n\n'
            '[[package]]\nname = "megatron-core"\nsource = { editable = "3rdparty/Megatron-LM" }\n'
            '[package.metadata]\nrequires-dist = [\n    { name = "transformer-engine", extras = ["core-cu13"] },\n]\n'
        ),
        "docker/Dockerfile.ci": "ARG BASE_IMAGE=registry/nvidia/pytorch:26.04-py3\n",
    }


def make_checkout(folder: Path) -> Made:
    """A clean Bridge checkout whose submodule is where Bridge wants it."""
    server, upstream, root = folder / "server", folder / "upstream", folder / "bridge"
    server.mkdir(parents=True)
    git(server, "init", "--quiet")
    git(server, "config", "uploadpack.allowAnySHA1InWant", "true")
    main = [commit(server, "Start (#1)", mcore_files())]
    main += [
        commit(server, f"Change {number} (#{number + 1})", {"megatron/core/value.py": f"V = {number}\n"})
        for number in range(1, 4)
    ]
    git(server, "checkout", "--quiet", "-b", "dev", main[1])
    dev = commit(server, "Try something (#99)", {"megatron/core/extra.py": "E = 1\n"})
    git(server, "checkout", "--quiet", "main")
    upstream.mkdir()
    git(upstream, "init", "--quiet")
    commit(upstream, "Start", bridge_files())
    git(upstream, "submodule", "--quiet", "add", str(server), SUBMODULE)
    git(upstream / SUBMODULE, "checkout", "--quiet", main[1])
    commit(upstream, "Pin Megatron-LM", {".main.commit": main[1] + "\n", ".dev.commit": dev + "\n"})
    git(upstream / SUBMODULE, "checkout", "--quiet", main[2])
    commit(upstream, "Move the pin (#5)", {".main.commit": main[2] + "\n"})
    git(folder, "clone", "--quiet", str(upstream), str(root))
    git(root, "submodule", "--quiet", "update", "--init")
    # What came after the clone: only the server has it.
    git(server, "checkout", "--quiet", "--detach", main[0])
    pull = commit(server, "A pull request", {"megatron/core/pull.py": "P = 7\n"})
    git(server, "update-ref", "refs/pull/7/head", pull)
    git(server, "checkout", "--quiet", "main")
    return Made(root=root, server=server, main=main, dev=dev, pull=pull)


def make_experiment(folder: Path, iteration: int = 10) -> Path:
    """An experiment as a Bridge run leaves it: checkpoints with both trackers, and event files."""
    checkpoints = folder / "default" / "checkpoints"
    (checkpoints / f"iter_{iteration:07d}").mkdir(parents=True)
    (checkpoints / f"iter_{iteration:07d}" / "__0_0.distcp").write_bytes(b"w" * 1000)
    (checkpoints / "latest_checkpointed_iteration.txt").write_text(f"{iteration}\n", encoding="utf-8")
    (checkpoints / "latest_train_state.pt").write_bytes(b"s")
    (folder / "default" / "tb_logs").mkdir()
    (folder / "default" / "tb_logs" / "events.out.tfevents.1").write_bytes(b"e")
    return folder


def make_package(folder: Path, *, is_regular: bool = False) -> Path:
    """A folder with a ``megatron.core`` of its own, as it would be put on PYTHONPATH."""
    (folder / "megatron" / "core").mkdir(parents=True)
    (folder / "megatron" / "core" / "__init__.py").write_text("", encoding="utf-8")
    if is_regular:
        (folder / "megatron" / "__init__.py").write_text("raise SystemExit('never imported')\n", encoding="utf-8")
    return folder


def drop(folder: Path) -> None:
    """Remove a folder of this test."""
    shutil.rmtree(folder)
