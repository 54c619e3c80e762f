"""The demo's history: made of the installed packages, and fair."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo import DemoHistory, make_history
from lossbisect.demo.edits import BREAKS, IMPORT_ERROR
from lossbisect.errors import TrainerError

PYTHON = Path(sys.executable)

pytestmark = pytest.mark.real


def _git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, text=True, check=True).stdout


def _subjects(history: DemoHistory) -> list[str]:
    """Subjects after the released commit, oldest first, without their pull requests."""
    log = _git(history.repo / SUBMODULE, "log", "--reverse", "--format=%s", f"{history.good}..{history.bad}")
    return [subject.rpartition(" (#")[0] for subject in log.splitlines()]


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[DemoHistory]:
    """Histories of four seeds."""
    return [make_history(tmp_path_factory.mktemp("demo"), PYTHON, seed=seed) for seed in range(4)]


def test_every_history_holds_one_break_and_one_import_error(histories: list[DemoHistory]) -> None:
    """At least 24 commits, one that changes numbers and isn't among the last three, one that doesn't import."""
    breaks = {edit.subject for edit in BREAKS}
    for history in histories:
        subjects = _subjects(history)
        planted = _git(history.repo / SUBMODULE, "log", "-1", "--format=%s", history.planted).rpartition(" (#")[0]
        assert len(subjects) == history.commits >= 24
        assert [subject for subject in subjects if subject in breaks] == [planted]
        assert planted not in subjects[-3:]
        assert subjects.count(IMPORT_ERROR.subject) == 1


def test_seeds_give_different_stories(histories: list[DemoHistory]) -> None:
    """Another seed plants another commit or another place; the same seed gives the same commits."""
    assert len({history.planted for history in histories}) > 1


def test_the_same_seed_gives_the_same_commits(histories: list[DemoHistory], tmp_path: Path) -> None:
    """A history can be made again, SHA for SHA."""
    assert make_history(tmp_path, PYTHON, seed=0).planted == histories[0].planted


def test_every_changed_file_is_valid_python(histories: list[DemoHistory]) -> None:
    """No commit breaks a file's syntax: only the one planted for it fails to import, and no other."""
    for history in histories:
        mcore = history.repo / SUBMODULE
        parsed = 0
        for commit in _git(mcore, "log", "--format=%H", f"{history.good}..{history.bad}").splitlines():
            for name in _git(mcore, "diff-tree", "--no-commit-id", "-r", "--name-only", commit).splitlines():
                if name.endswith(".py"):
                    ast.parse(_git(mcore, "show", f"{commit}:{name}"), filename=name)
                    parsed += 1
        assert parsed >= history.commits // 2


def test_it_looks_like_a_bridge_checkout(histories: list[DemoHistory]) -> None:
    """The superproject pins the released commit in a submodule, and nothing in it is changed but the pointer."""
    repo = histories[0].repo
    pinned = _git(repo, "ls-tree", "HEAD", SUBMODULE).split()
    assert pinned[1] == "commit"
    assert pinned[2] == _git(repo / SUBMODULE, "rev-parse", histories[0].good).strip()
    assert _git(repo, "status", "--porcelain", "--ignore-submodules=all") == ""


def test_an_interpreter_without_the_packages_is_refused(tmp_path: Path) -> None:
    """A Python that lacks the packages, or isn't there, gives one line that says what to do."""
    with pytest.raises(TrainerError, match="make train"):
        make_history(tmp_path / "a", Path("/bin/false"), seed=1)
    with pytest.raises(TrainerError, match="--python"):
        make_history(tmp_path / "b", tmp_path / "none", seed=1)
