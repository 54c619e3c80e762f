"""What a person calls a commit."""

import shlex
import subprocess
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.names import Ends, latest_bump, named_ends, resolve
from lossbisect.bisect.scope import Scope, Searched
from lossbisect.errors import GitError
from tests.bisect.support import commit, git, make_bridge


def at(day: str) -> dict[str, str]:
    """Git's variables for a commit of a day."""
    return {"GIT_AUTHOR_DATE": f"{day}T12:00:00+0000", "GIT_COMMITTER_DATE": f"{day}T12:00:00+0000"}


@pytest.fixture
def dated(tmp_path: Path) -> tuple[Path, list[str]]:
    """A Megatron-LM checkout with a commit of each of these days, the second one dated long before the first."""
    folder = tmp_path / "mlm"
    folder.mkdir()
    git(folder, "init", "--quiet")
    shas = []
    for number, day in enumerate(("2026-03-01", "2001-01-01", "2026-03-03", "2026-03-05")):
        text = {"megatron/core/__init__.py": f"# {number}\n"}
        shas.append(commit(folder, f"Change {number} (#{40 + number})", text, **at(day)))
    git(folder, "tag", "core_v0.15.0", shas[2])
    return folder, shas


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("2026-03-01", 1),
        ("2026-03-02", 1),
        ("2026-03-03", 2),
        ("2026-03-03T11:59", 1),
        ("2026-03-03 12:00+00:00", 2),
        ("2030-01-01", 3),
        ("0.15.0", 2),
        ("v0.15.0", 2),
        ("core_v0.15.0", 2),
        ("#41", 1),
        ("HEAD~1", 2),
    ],
)
def test_a_day_a_release_and_a_pull_request_name_a_commit(dated: tuple[Path, list[str]], name: str, index: int) -> None:
    """Each form gives the commit it should, and a commit with an old date isn't there before its parent."""
    folder, shas = dated
    with open_codebase(folder) as code:
        assert resolve(code, name) == shas[index]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2000-01-01", "has no commit of 2000-01-01 or before"),
        ("2026-13-01", "is no day"),
        ("#4", "says #4"),
        ("0.99.0", "no commit '0.99.0'"),
        ("f" * 40, f"fetch origin {'f' * 40}"),
        (" ", "no name of a commit"),
    ],
)
def test_a_name_that_fits_nothing_says_so(dated: tuple[Path, list[str]], name: str, expected: str) -> None:
    """The line names what was looked for, and the fetch that may bring it."""
    with open_codebase(dated[0]) as code, pytest.raises(GitError) as caught:
        resolve(code, name)
    assert expected in str(caught.value)


def test_a_pull_request_that_two_commits_name_is_not_guessed(dated: tuple[Path, list[str]]) -> None:
    """A change that was reverted and landed again under one number has no one commit."""
    folder, _ = dated
    commit(folder, "Change 1 again (#41)", {"a.txt": "a"})
    with open_codebase(folder) as code, pytest.raises(GitError, match="2 commits say #41"):
        resolve(code, "#41")


def test_a_tag_that_looks_like_a_day_stays_a_tag(dated: tuple[Path, list[str]]) -> None:
    """What git knows by a name keeps it."""
    folder, shas = dated
    git(folder, "tag", "2026-03-05", shas[0])
    with open_codebase(folder) as code:
        assert resolve(code, "2026-03-05") == shas[0]


def test_a_submodule_looks_days_up_on_its_remotes_branch(dated: tuple[Path, list[str]], tmp_path: Path) -> None:
    """The pin is older than the day that is asked for; the remote's default branch goes on after it."""
    folder, shas = dated
    bridge = tmp_path / "bridge"
    make_bridge(bridge, folder)
    git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", "--detach", shas[1])
    with open_codebase(bridge, allow_dirty=True) as code:
        assert resolve(code, "2026-03-05") == shas[3]
        assert resolve(code, "bridge:HEAD") == shas[3]


def test_the_latest_bump_gives_both_pins(dated: tuple[Path, list[str]], tmp_path: Path) -> None:
    """The newest commit of Bridge that moved the submodule, not one that came after it or that set it first."""
    folder, shas = dated
    bridge = tmp_path / "bridge"
    make_bridge(bridge, folder)
    with open_codebase(bridge) as code, pytest.raises(GitError, match="moved the submodule"):
        latest_bump(code)
    for sha in (shas[1], shas[2]):
        git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", "--detach", sha)
        commit(bridge, f"Bump to {sha[:10]}", {})
    commit(bridge, "Something else", {"a.txt": "a"})
    with open_codebase(bridge) as code:
        bump = latest_bump(code)
    assert (bump.before, bump.after) == (shas[1], shas[2])
    assert bump.bridge_commit == git(bridge, "rev-parse", "HEAD~1")


def test_megatron_lm_has_no_bump(dated: tuple[Path, list[str]]) -> None:
    """Without pins both ends have to be named."""
    with open_codebase(dated[0]) as code, pytest.raises(GitError, match="--good COMMIT --bad COMMIT"):
        latest_bump(code)


def test_the_fetch_that_is_advised_works(dated: tuple[Path, list[str]], tmp_path: Path) -> None:
    """A commit that only the remote has is found after the printed command ran."""
    folder, _ = dated
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(folder), str(clone))
    newer = commit(folder, "Newer", {"b.txt": "b"})
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    with open_codebase(clone) as code, pytest.raises(GitError) as caught:
        resolve(code, newer)
    subprocess.run(shlex.split(str(caught.value).split("Run: ")[1]), check=True, capture_output=True)
    with open_codebase(clone) as code:
        assert resolve(code, newer) == newer


def test_ends_that_are_not_named_come_from_the_checkout(dated: tuple[Path, list[str]], tmp_path: Path) -> None:
    """No end: the latest bump; no bad end: what is checked out; no good end: it has to be looked for."""
    folder, shas = dated
    bridge = tmp_path / "bridge"
    make_bridge(bridge, folder)
    for sha in (shas[0], shas[2]):
        git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", "--detach", sha)
        commit(bridge, f"Bump to {sha[:10]}", {})
    with open_codebase(bridge) as code:
        both = named_ends(code, None, None)
        assert (both.good, both.bad) == (shas[0], shas[2])
        assert "latest bump" in both.notes[0]
        good = named_ends(code, shas[1], None)
        assert (good.good, good.bad) == (shas[1], shas[2])
        assert named_ends(code, "a", "b") == Ends(good="a", bad="b")
        assert named_ends(code, None, "main") == Ends(good=None, bad="main")
        assert named_ends(code, None, None, Scope(oldest="HEAD~1")).bad == shas[2]
        searched = named_ends(code, None, None, Scope(searched=Searched.BRIDGE))
        assert (searched.good, searched.bad) == (None, git(bridge, "rev-parse", "HEAD"))
        with pytest.raises(GitError, match="leave one of them out"):
            named_ends(code, "a", "b", Scope(oldest="c"))
