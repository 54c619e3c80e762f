"""What goes together, read from each commit's own files."""

import json
from pathlib import Path

import pytest

from lossbisect.assist.compat import compatibility, periods, together_at
from lossbisect.assist.pins import read_pins
from lossbisect.errors import GitError
from tests.assist.support import Called, Made, bridge_files, call, drop, mcore_files, package_info
from tests.bisect.support import commit, git, snapshot

pytestmark = pytest.mark.usefixtures("environment")


def compat(*arguments: str) -> Called:
    """``lossbisect compat``."""
    return call("compat", *arguments)


def test_a_period_is_a_stretch_of_equal_versions(made: Made) -> None:
    """Moves of the pin with the same versions make one row; another torch or a new release starts the next."""
    first = git(made.root, "rev-list", "--max-parents=0", "HEAD")
    commit(made.root, "torch", {"uv.lock": bridge_files(torch="2.14.0")["uv.lock"]})
    commit(made.root, "Docs only", {"README.md": "no pin"})
    commit(made.root, "Release", {"src/megatron/bridge/package_info.py": package_info("0.8.0")})
    before = snapshot(made.root)
    pinned = git(made.root, "rev-parse", "HEAD~4")
    rows = tuple(compatibility(made.root, pinned, "HEAD"))
    assert snapshot(made.root) == before
    runs = periods(rows)
    assert [(run[0].pins.version, run[0].torch, len(run)) for run in runs] == [
        ("0.7.0", "2.13.0", 2),
        ("0.7.0", "2.14.0", 1),
        ("0.8.0", "2.14.0", 1),
    ]
    assert (runs[0][0].mcore, runs[0][1].mcore) == (made.main[1], made.main[2])
    assert runs[0][0].dev == made.dev
    assert together_at(made.root, first).mcore == ""


def test_the_table_and_the_json(made: Made) -> None:
    """The table has a row a period with the pins' own figures; the JSON has every commit that changes a pin."""
    done = compat("HEAD~1..HEAD", "--repo", str(made.root))
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.splitlines()
    assert head.split()[:3] == ["since", "commit", "Bridge"]
    wanted = ["0.7.0", "0.20.0", f"{made.main[1][:10]}", "..", made.main[2][:10], ">=3.10", "2.13.0", "13"]
    assert row.split()[2:] == [*wanted, "2.17.1+4329ff84", "26.04"]
    report = json.loads(compat("HEAD~1..HEAD", "--repo", str(made.root), "--json").stdout)
    assert [item["mcore"] for item in report["commits"]] == made.main[1:3]


def test_another_branch_and_a_megatron_lm_checkout(made: Made) -> None:
    """From a release's branch to main the first row is the release's own; Megatron-LM alone has no Bridge columns."""
    git(made.server, "checkout", "--quiet", "-b", "core_r0.19", made.main[0])
    release = commit(made.server, "Release", mcore_files("0.19.0"))
    rows = tuple(compatibility(made.server, release, "main"))
    assert [row.pins.version for row in rows] == ["0.19.0", "0.20.0"]
    done = compat(f"{release}..main", "--repo", str(made.server))
    assert done.stdout.splitlines()[0].split()[:3] == ["since", "commit", "Megatron-Core"]
    git(made.server, "checkout", "--quiet", "main")
    git(made.server, "branch", "--quiet", "-D", "core_r0.19")


def test_a_missing_submodule_leaves_its_figures_open(made: Made) -> None:
    """Without Megatron-LM at hand its version isn't guessed: the cell is a dash, Bridge's own figures stand."""
    drop(made.submodule)
    row = together_at(made.root, "HEAD")
    assert row.mcore_pins is None
    assert row.pins.torch_locked == "2.13.0"
    assert compat("HEAD", "--repo", str(made.root)).stdout.splitlines()[1].split()[3] == "-"


@pytest.mark.parametrize(
    ("commits", "words"),
    [("nosuch..HEAD", "no commit 'nosuch'"), ("HEAD..HEAD~1", "Swap them"), ("..HEAD", "Name both ends"), ("-x", "-x")],
)
def test_bad_ends_are_one_line(made: Made, commits: str, words: str) -> None:
    """A commit that isn't there, ends the wrong way round and half a range are told in one line with exit 2."""
    done = compat("--repo", str(made.root), commits)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_no_checkout(tmp_path: Path) -> None:
    """Another repository is no checkout of either project."""
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "Start", {"x": ""})
    with pytest.raises(GitError, match="neither a Megatron Bridge checkout"):
        together_at(tmp_path, "HEAD")


@pytest.mark.parametrize(
    ("source", "version", "sha"),
    [
        ('{ registry = "r" }', "0.14.0rc0", None),
        (f'{{ git = "g?rev=main#{"a" * 40}" }}', "0.14.0rc0", "a" * 40),
        ('{ editable = "3rdparty/Megatron-LM" }', None, None),
    ],
)
def test_before_the_submodule_the_lock_tells_megatron_core(source: str, version: str | None, sha: str | None) -> None:
    """Its version, and its commit where it came from Git; Bridge's version by the name that it had."""
    lock = f'[[package]]\nname = "megatron-core"\nversion = "0.14.0rc0"\nsource = {source}\n'
    pins = read_pins({"uv.lock": lock, "src/megatron/hub/package_info.py": package_info("0.1.0")}.get)
    assert (pins.mcore_locked, pins.mcore_commit, pins.version) == (version, sha, "0.1.0")
