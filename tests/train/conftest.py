"""A made-up Megatron-LM tree whose trainer needs neither torch nor Megatron-Core."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

CORE = '__version__ = "0.0.0"\n'
TRAIN = """
import megatron.core
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter(log_dir="tb")
for iteration in range(1, 11):
    writer.add_scalar("lm loss", 10.0 / iteration, iteration)
    print(f" iteration {iteration:8d}/      10 | lm loss: {10.0 / iteration:.6E} |")
"""

type MakeTree = Callable[[str], Path]


def git(repo: Path, *arguments: str) -> str:
    """Run git in a repository, free of the user's configuration."""
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@x"}
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(repo), *arguments],
        env={**os.environ, **who, **clean},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Commit a Megatron-LM tree whose ``pretrain_gpt.py`` is the given text."""

    def make(script: str) -> Path:
        tree = tmp_path / "Megatron-LM"
        (tree / "megatron" / "core").mkdir(parents=True)
        (tree / "megatron" / "core" / "__init__.py").write_text(CORE)
        (tree / "pretrain_gpt.py").write_text(script)
        git(tree, "init", "--quiet")
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "-m", "all")
        return tree

    return make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder and a cache for all real runs of a file: a cache of each test's own would make every run a cold one."""
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOSSBISECT_CACHE_DIR", str(folder / "cache"))
        yield folder


@pytest.fixture(autouse=True)
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own, unless its file has one for all."""
    if "folder" in request.fixturenames:
        shared: Path = request.getfixturevalue("folder")
        return shared / "cache"
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def spec_of(tree: Path, python: Path, *, commit: str | None = None, timeout_s: float = 60.0) -> RunSpec:
    """A run of the tree's own trainer, without emulated CUDA."""
    return RunSpec(
        sources=Sources(mcore=tree, mcore_commit=commit or git(tree, "rev-parse", "HEAD")),
        recipe="vanilla-cpu",
        trainer=TrainerName.MLM,
        lane=Lane.CUDA,
        python=python,
        timeout_s=timeout_s,
    )
