"""A made checkout, built once and copied for each test; nothing of the machine's own set-up takes part."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.assist.support import SUBMODULE, Made, make_checkout
from tests.bisect.support import git

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


@pytest.fixture(scope="session")
def _made_once(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_checkout(tmp_path_factory.mktemp("made"))


@pytest.fixture
def made(_made_once: Made, tmp_path: Path) -> Made:
    """A clean checkout of this test's own, with a blank in its path."""
    root = tmp_path / "a b" / "bridge"
    shutil.copytree(_made_once.root, root, symlinks=True)
    for tree in (root, root / SUBMODULE):
        git(tree, "update-index", "--refresh")  # the copies have other inodes
    return replace(_made_once, root=root)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The environment variables of this test, which stands in an empty folder."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    ours = ENVIRONMENT | {"LOSSBISECT_CACHE_DIR": str(tmp_path / "cache")}
    for name in [name for name in os.environ if name.startswith(("GIT_", "PYTHON", "NVTE_", "SLURM_"))]:
        monkeypatch.delenv(name)
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    return ours
