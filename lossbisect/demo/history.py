"""Lay out a Bridge superproject whose submodule has a history that starts with the released Megatron-Core.

Everything is taken from the installed packages, so what is trained is real; only the commits after the first one are
made up.
"""

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo.edits import BREAKS, HARMLESS, IMPORT_ERROR, IMPORT_REPAIR, Edit, EditKind
from lossbisect.errors import TrainerError

__all__ = ["DemoHistory", "make_history"]

_CORE_PARTS = ("core", "training")
_LAST_HARMLESS = 3
"""The newest commits are harmless: the break isn't simply what came last."""
_FIRST_PULL_REQUEST = 7001
# The packages are found through their parent, the namespace package megatron, which runs no code.
_ASK_WHERE = """
from importlib.util import find_spec
for name in ("megatron.core", "megatron.bridge"):
    print(find_spec(name).submodule_search_locations[0])
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoHistory:
    """Where the history is, and what was planted.

    Attributes:
        repo: The Bridge superproject.
        good: Tag of the released Megatron-Core in the submodule.
        bad: Branch of the newest commit.
        commits: Number of commits after the released one.
        planted: Full SHA of the commit that changes numbers. For the demo's last line and the tests; the bisect isn't
            told.
    """

    repo: Path
    good: str
    bad: str
    commits: int
    planted: str


def make_history(folder: Path, python: Path, *, seed: int) -> DemoHistory:
    """Make the superproject in ``folder``.

    Args:
        folder: An empty directory.
        python: Interpreter that has megatron-core and megatron-bridge installed.
        seed: Chooses the break, its place and the order of the rest.

    Raises:
        TrainerError: The packages aren't installed there, or lack every passage that the breaks change.
    """
    core, bridge = _installed(python)
    repo = folder / "Megatron-Bridge"
    mcore = repo / SUBMODULE
    for part in _CORE_PARTS:
        _copy(core.parent / part, mcore / "megatron" / part)
    _git(mcore, "init", "--quiet", "--initial-branch=main")
    _commit(mcore, "Megatron-Core as released", "The Megatron-LM team", number=0)
    _git(mcore, "tag", "released")
    _lay_out_bridge(repo, bridge)
    edits = _order(random.Random(seed), mcore)  # noqa: S311  # a reproducible story, not a secret
    shas = [_apply(mcore, edit, number) for number, edit in enumerate(edits, start=1)]
    planted = next(sha for sha, edit in zip(shas, edits, strict=True) if edit.kind is EditKind.BREAKS_NUMBERS)
    return DemoHistory(repo=repo, good="released", bad="main", commits=len(shas), planted=planted)


def _order(chance: random.Random, mcore: Path) -> list[Edit]:
    """All commits, oldest first: the break anywhere but at the very end, the import error anywhere too."""
    harmless = [edit for edit in HARMLESS if _fits(edit, mcore)]
    breaks = [edit for edit in BREAKS if _fits(edit, mcore)]
    if not breaks or not _fits(IMPORT_ERROR, mcore):
        raise TrainerError(
            f"{mcore}: this Megatron-Core lacks the lines that the demo changes. "
            "Install the versions of requirements/train.txt."
        )
    # Edits of one file keep their order; a rotation is enough to move everything else around.
    turn = chance.randrange(len(harmless))
    edits = _rotated_by_file(harmless, turn)
    place = chance.randint(1, len(edits) - _LAST_HARMLESS)
    edits.insert(place, chance.choice(breaks))
    gap = chance.randint(1, len(edits) - _LAST_HARMLESS)
    edits[gap:gap] = [IMPORT_ERROR, IMPORT_REPAIR]
    return edits


def _rotated_by_file(edits: list[Edit], turn: int) -> list[Edit]:
    """The edits, starting elsewhere; those of one file stay in order, since later ones build on earlier ones."""
    rotated = edits[turn:] + edits[:turn]
    queues = {edit.path: [other for other in edits if other.path == edit.path] for edit in edits}
    return [queues[edit.path].pop(0) for edit in rotated]


def _fits(edit: Edit, mcore: Path) -> bool:
    file = mcore / edit.path
    return edit.applied(file.read_text(encoding="utf-8") if file.exists() else "") is not None


def _apply(mcore: Path, edit: Edit, number: int) -> str:
    file = mcore / edit.path
    file.parent.mkdir(parents=True, exist_ok=True)
    text = edit.applied(file.read_text(encoding="utf-8") if file.exists() else "")
    assert text is not None, f"{edit.subject} doesn't apply"
    file.write_text(text, encoding="utf-8")
    return _commit(mcore, f"{edit.subject} (#{_FIRST_PULL_REQUEST + number})", edit.author, number)


def _lay_out_bridge(repo: Path, bridge: Path) -> None:
    """Bridge's own commit, with the submodule's released commit as its pointer."""
    _copy(bridge, repo / "src" / "megatron" / "bridge")
    (repo / ".gitmodules").write_text(
        f'[submodule "{SUBMODULE}"]\n\tpath = {SUBMODULE}\n\turl = ./{SUBMODULE}\n', encoding="utf-8"
    )
    _git(repo, "init", "--quiet", "--initial-branch=main")
    _commit(repo, "Megatron Bridge as released", "The Megatron Bridge team", number=0)


def _installed(python: Path) -> tuple[Path, Path]:
    """Folders of megatron.core and megatron.bridge of an interpreter, found without importing them."""
    try:
        done = subprocess.run([str(python), "-c", _ASK_WHERE], capture_output=True, text=True, check=False)
    except OSError as error:
        raise TrainerError(
            f"{python}: can't be started: {error.strerror}. Name the interpreter with --python."
        ) from error
    folders = [Path(line) for line in done.stdout.splitlines()]
    if done.returncode or len(folders) != 2:
        raise TrainerError(
            f"{python}: megatron-core and megatron-bridge aren't installed there. "
            "Run 'make train', or name another --python."
        )
    return folders[0], folders[1]


def _copy(source: Path, target: Path) -> None:
    """Source files only: a real checkout has no byte code and no compiled helper."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.so"))


def _commit(repo: Path, subject: str, author: str, number: int) -> str:
    email = f"{author.lower().replace(' ', '.')}@example.com"
    date = f"2026-{6 + number // 28:02d}-{1 + number % 28:02d}T12:00:00+00:00"
    identity = {
        "GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": author, "GIT_COMMITTER_EMAIL": email, "GIT_COMMITTER_DATE": date,
    }  # fmt: skip
    _git(repo, "add", "--all", "--force")
    _git(repo, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", subject, environment=identity)
    return _git(repo, "rev-parse", "HEAD")


def _git(repo: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    """Run git without the user's configuration: hooks, signing and templates of theirs have no part in the demo."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    isolated = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(repo), "-c", "advice.addEmbeddedRepo=false", "-c", "core.autocrlf=false", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**clean, **isolated, **(environment or {})}
    )
    if done.returncode:
        raise TrainerError(f"{repo}: git {arguments[0]} failed: {done.stderr.strip()[-300:]}")
    return done.stdout.strip()
