"""Commits that the clone lacks, fetched from its own remotes into a repository of ours."""

import shutil
from pathlib import Path

import pytest

from lossbisect.bisect import Answer, bisect_range, resume_bisect
from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.names import resolve
from lossbisect.bisect.recall import recall_bisect
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.vanished import with_pins, within_reach
from lossbisect.errors import GitError
from tests.bisect.support import commit, git, make_bridge, make_history, snapshot

A, B = 10.25, 10.5


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """A clone, its remote, and the SHAs of a branch that the remote has dropped since; the first is on main.

    The remote's pull request 7 has the branch's second commit.
    """
    remote, clone = tmp_path / "remote", tmp_path / "a clone"
    base = make_history(remote, [A, A])[-1]
    git(tmp_path, "clone", "--quiet", f"file://{remote}", str(clone))
    git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(remote, "checkout", "--quiet", "-b", "nightly")
    shas = [base]
    for number, value in enumerate([A, A, B, B]):
        files = {"megatron/core/loss.py": f"LOSS = {value!r}\n", "nightly.txt": str(number)}
        shas.append(commit(remote, f"Nightly {number}", files))
    git(remote, "update-ref", "refs/pull/7/head", shas[2])
    git(remote, "checkout", "--quiet", "main")
    git(remote, "branch", "--quiet", "-D", "nightly")
    return clone, remote, shas


def test_a_vanished_commit_is_fetched_by_its_sha(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """It is known then, with what comes before it, beside all that the clone knows; the clone isn't touched."""
    folder, _, shas = clone
    before = snapshot(folder)
    with open_codebase(folder) as code, within_reach(code, ["main", None, shas[4]], tmp_path / "work") as reach:
        assert resolve(reach.code, shas[4]) == shas[4]
        assert resolve(reach.code, f"{shas[4]}~2") == shas[2]
        assert resolve(reach.code, "main") == shas[0]
        assert resolve(reach.code, "origin/main") == shas[0]
        assert shas[4] in reach.notes[0]
    assert snapshot(folder) == before


def test_it_is_fetched_once(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """The second time it needs no remote."""
    folder, remote, shas = clone
    with open_codebase(folder) as code, within_reach(code, [shas[4]], tmp_path / "work"):
        pass
    shutil.rmtree(remote)
    with open_codebase(folder) as code, within_reach(code, [shas[4]], tmp_path / "work") as reach:
        assert resolve(reach.code, shas[4]) == shas[4]
        assert reach.notes == ()


def test_a_pull_request_that_was_never_merged(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """Its number stands for its head; one that a commit's subject names stays that commit."""
    folder, _, shas = clone
    with open_codebase(folder) as code, within_reach(code, ["#7", "#101"], tmp_path / "work") as reach:
        assert reach.known("#7") == shas[2]
        assert reach.known("#101") == "#101"
        assert resolve(reach.code, "#101") == shas[0]


@pytest.mark.parametrize("name", ["0123456789012345678901234567890123456789", "#8", "!8"])
def test_what_no_remote_has(clone: tuple[Path, Path, list[str]], tmp_path: Path, name: str) -> None:
    """The error says what was tried, and where."""
    told = r"can't be fetched\. Tried: .* from origin"
    with (
        open_codebase(clone[0]) as code,
        pytest.raises(GitError, match=told),
        within_reach(code, [name], tmp_path / "work"),
    ):
        pass


def test_names_that_are_not_of_vanished_commits(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """An unknown branch is left to the error that it has always had; nothing is made for it."""
    with open_codebase(clone[0]) as code, within_reach(code, ["nonsense", "0.15.0"], tmp_path / "work") as reach:
        assert reach.code is code
    assert not (tmp_path / "work").exists()


def test_a_password_in_an_address_is_not_shown(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """What git says of a remote is masked."""
    git(clone[0], "remote", "set-url", "origin", "https://me:hunter2secret@localhost:1/x.git")
    with (
        open_codebase(clone[0]) as code,
        pytest.raises(GitError) as caught,
        within_reach(code, [clone[2][4]], tmp_path / "work"),
    ):
        pass
    assert "hunter2secret" not in str(caught.value)


def test_pins_that_the_submodule_lacks(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """What Bridge pins is fetched into ours, as an end and over a range of Bridge's commits."""
    folder, remote, shas = clone
    bridge = tmp_path / "bridge"
    make_bridge(bridge, remote)
    for sha in shas[2:4]:
        git(bridge, "update-index", "--cacheinfo", f"160000,{sha},3rdparty/Megatron-LM")
        git(bridge, "commit", "--quiet", "-m", "Bump")
    head = git(bridge, "rev-parse", "HEAD")
    shutil.rmtree(bridge / ".git/modules")
    shutil.rmtree(bridge / "3rdparty/Megatron-LM")
    git(tmp_path, "clone", "--quiet", f"file://{remote}", str(bridge / "3rdparty/Megatron-LM"))
    with open_codebase(bridge, allow_dirty=True) as code:
        with within_reach(code, ["bridge:HEAD"], tmp_path / "work") as reach:
            assert resolve(reach.code, "bridge:HEAD") == shas[3]
        with with_pins(code, f"{head}~2", head, tmp_path / "other") as whole:
            assert resolve(whole, shas[2]) == shas[2]
            assert resolve(whole, "bridge:HEAD") == shas[3]
    assert folder.exists()


@pytest.mark.usefixtures("played")
def test_a_bisect_over_vanished_commits(clone: tuple[Path, Path, list[str]]) -> None:
    """The ends and all between them are run from ours, also when the bisect is shown again or gone on with."""
    folder, _, shas = clone
    before = snapshot(folder)
    result = bisect_range(folder, "main", shas[4])
    assert result.answer is Answer.FOUND
    assert result.culprit is not None
    assert result.culprit.commit.sha == shas[3]
    assert any("was fetched" in warning for warning in result.finding.warnings)
    assert resume_bisect(result.id).answer is Answer.FOUND
    shown = recall_bisect(result.id)
    assert shown.commits == result.commits
    assert snapshot(folder) == before


def test_a_vanished_commit_of_bridge(clone: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    """Where Bridge is searched, its own commits are fetched; a Megatron-LM checkout has none."""
    remote, bridge = tmp_path / "bridge-remote", tmp_path / "bridge"
    make_bridge(remote, clone[1])
    git(tmp_path, "clone", "--quiet", "--recurse-submodules", str(remote), str(bridge))
    git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    gone = commit(remote, "Gone", {"a.txt": "a"})
    git(remote, "reset", "--quiet", "--hard", "HEAD~1")
    before = snapshot(bridge)
    with (
        open_codebase(bridge) as code,
        within_reach(code, [gone, "HEAD"], tmp_path / "work", Searched.BRIDGE) as reach,
    ):
        assert resolve(reach.code, gone, Searched.BRIDGE) == gone
        assert resolve(reach.code, "HEAD", Searched.BRIDGE) == git(bridge, "rev-parse", "HEAD")
    assert snapshot(bridge) == before
    with (
        open_codebase(clone[0]) as code,
        pytest.raises(GitError, match="no commits of Bridge"),
        within_reach(code, [gone], tmp_path / "work", Searched.BRIDGE),
    ):
        pass
