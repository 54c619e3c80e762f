"""Reading git: ranges, commits, and one clear line for each thing that can be wrong."""

import os
import shlex
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.commits import changed_files, commit_info, commit_range, github_name, merged_commits
from lossbisect.bisect.names import resolve
from lossbisect.errors import GitError
from tests.bisect.support import commit, git, make_bridge, make_megatron_lm, snapshot


@pytest.fixture
def mlm(tmp_path: Path) -> tuple[Path, list[str]]:
    """A Megatron-LM checkout with six commits."""
    folder = tmp_path / "Megatron LM é"
    return folder, make_megatron_lm(folder, 5)


@pytest.fixture
def bridge(tmp_path: Path, mlm: tuple[Path, list[str]]) -> Path:
    """A Bridge checkout whose submodule is that Megatron-LM."""
    folder = tmp_path / "Bridge é"
    make_bridge(folder, mlm[0])
    return folder


def error_of(repo: Path, good: str = "HEAD~1", bad: str = "HEAD", *, allow_dirty: bool = False) -> str:
    """The message of the error that a range gives."""
    with pytest.raises(GitError) as caught, open_codebase(repo, allow_dirty=allow_dirty) as code:
        commit_range(code, good, bad)
    return str(caught.value)


def test_a_range_is_oldest_first_without_good_and_with_bad(mlm: tuple[Path, list[str]]) -> None:
    """The range leaves the good end out and ends with the bad one."""
    folder, shas = mlm
    with open_codebase(folder) as code:
        commits = commit_range(code, shas[1], "main")
    assert [each.sha for each in commits.commits] == shas[2:]
    assert commits.good.sha == shas[1]
    assert commits.bad.sha == shas[-1] == commits.at(3).sha
    assert commits.at(-1).sha == shas[1]


def test_order_is_that_of_parents_not_of_dates(tmp_path: Path) -> None:
    """Commit dates go back and forth on the real history; they don't move a commit."""
    make_megatron_lm(tmp_path / "mlm", 0)
    shas = []
    for number, year in enumerate((2030, 2001, 2019, 2005)):
        date = f"{year}-01-01T00:00:00+0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        shas.append(commit(tmp_path / "mlm", f"Commit {number}", {"a.txt": str(number)}, **dates))
    with open_codebase(tmp_path / "mlm") as code:
        commits = commit_range(code, "HEAD~4", "HEAD")
    assert [each.sha for each in commits.commits] == shas


def test_a_commit_knows_its_author_and_pull_request(mlm: tuple[Path, list[str]]) -> None:
    """Author, date, subject, pull request and files are read as they are."""
    folder, shas = mlm
    with open_codebase(folder) as code:
        info = commit_info(code.mcore, shas[2])
        files = changed_files(code.mcore, info)
    assert (info.author, info.email, info.pull_request) == ("Ada Löve", "ada@example.com", "#102")
    assert info.subject == "Change the value to 2 (#102)"
    assert [(file.path, file.status) for file in files] == [("megatron/core/value.py", "modified")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Fix the router (#5047)", "#5047"),
        ("Mention (#12) in the middle", None),
        ("ADLR/megatron-lm!4131 - Fix MoE Aux loss", "!4131"),
        ("Merge branch 'x' into 'main'\n\nSee merge request ADLR/megatron-lm!3200", "!3200"),
        ("Hello world!", None),
        ('Revert "Add x (#7)" (#9)', "#9"),
    ],
)
def test_pull_request_numbers(tmp_path: Path, message: str, expected: str | None) -> None:
    """The number comes from the subject's end, or in GitLab's way from subject or body."""
    make_megatron_lm(tmp_path / "mlm", 0)
    commit(tmp_path / "mlm", message, {"a.txt": "a"})
    with open_codebase(tmp_path / "mlm") as code:
        assert commit_info(code.mcore, "HEAD").pull_request == expected


def test_files_of_any_name_and_change(tmp_path: Path) -> None:
    """Renamed, deleted and oddly named files are listed with their status."""
    folder = tmp_path / "mlm"
    make_megatron_lm(folder, 0)
    commit(folder, "Files", {"old.py": "x = 1\n" * 50, "gone.py": "y", 'tab\té "quoted".py': "z"})
    git(folder, "mv", "old.py", "new.py")
    git(folder, "rm", "--quiet", "gone.py")
    commit(folder, "Move", {'tab\té "quoted".py': "zz"})
    with open_codebase(folder) as code:
        files = changed_files(code.mcore, commit_info(code.mcore, "HEAD"))
        first = changed_files(code.mcore, commit_info(code.mcore, "HEAD~2"))
    assert {file.path: file.status for file in files} == {
        "new.py": "renamed",
        "gone.py": "deleted",
        'tab\té "quoted".py': "modified",
    }
    assert {file.status for file in first} == {"added"}


def test_text_in_any_encoding(tmp_path: Path) -> None:
    """A subject that isn't UTF-8 is still text that can be printed and written."""
    folder = tmp_path / "mlm"
    make_megatron_lm(folder, 0)
    (tmp_path / "message").write_bytes(b"Caf\xe9 (#5)\n")
    git(folder, "commit", "--quiet", "--allow-empty", "--file", str(tmp_path / "message"))
    with open_codebase(folder) as code:
        info = commit_info(code.mcore, "HEAD")
    assert info.subject.encode("utf-8").startswith(b"Caf")
    assert info.pull_request == "#5"


def test_a_merge_names_what_it_brought_in(tmp_path: Path) -> None:
    """The first-parent line holds the merge; its inner commits are told apart."""
    folder = tmp_path / "mlm"
    base = make_megatron_lm(folder, 1)[-1]
    git(folder, "checkout", "--quiet", "-b", "topic")
    inner = commit(folder, "ADLR/megatron-lm!7 - Inner", {"b.txt": "b"})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, "Other", {"c.txt": "c"})
    git(folder, "merge", "--quiet", "--no-ff", "-m", "Merge branch 'topic' into 'main'", "topic")
    with open_codebase(folder) as code:
        commits = commit_range(code, base, "main")
        assert [each.subject for each in commits.commits] == ["Other", "Merge branch 'topic' into 'main'"]
        assert [each.sha for each in merged_commits(code.mcore, commits.bad)] == [inner]
        off_the_line = commit_range(code, inner, "main")
    assert [each.subject for each in off_the_line.commits] == ["Merge branch 'topic' into 'main'"]
    assert "not on the first-parent line" in off_the_line.notes[0]


def test_bridge_reads_the_submodule(bridge: Path, mlm: tuple[Path, list[str]]) -> None:
    """In a Bridge checkout the submodule's commits are searched, and Bridge's own HEAD is kept."""
    with open_codebase(bridge / "src") as code:
        assert code.root == bridge
        assert code.bridge_commit == git(bridge, "rev-parse", "HEAD")
        assert [each.sha for each in commit_range(code, mlm[1][0], "HEAD").commits] == mlm[1][1:]
        assert resolve(code, "bridge:HEAD") == mlm[1][-1]


def test_a_pin_needs_bridge(mlm: tuple[Path, list[str]]) -> None:
    """``bridge:REV`` means nothing in a Megatron-LM checkout."""
    assert "Megatron Bridge" in error_of(mlm[0], good="bridge:HEAD")


def test_the_callers_git_variables_are_ignored(
    mlm: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a hook, or under git bisect run, git's own variables name another repository."""
    other = tmp_path / "other"
    make_megatron_lm(other, 1)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    with open_codebase(mlm[0]) as code:
        assert code.mcore_head == mlm[1][-1]


def test_github_name_of_the_remote(mlm: tuple[Path, list[str]]) -> None:
    """Owner and name come from the remote's address in each of its forms; without one there is none."""
    folder, _ = mlm
    with open_codebase(folder) as code:
        assert github_name(code.mcore) is None
        for url in ("https://github.com/NVIDIA/Megatron-LM", "git@github.com:NVIDIA/Megatron-LM.git"):
            git(folder, "config", "remote.origin.url", url)
            assert github_name(code.mcore) == "NVIDIA/Megatron-LM"


def test_missing_folder(tmp_path: Path) -> None:
    """A path that isn't there is named."""
    assert "no such folder" in error_of(tmp_path / "nowhere")


def test_not_a_checkout(tmp_path: Path) -> None:
    """A folder without git is named."""
    assert "not a git checkout" in error_of(tmp_path)


def test_a_checkout_of_something_else(tmp_path: Path) -> None:
    """A repository that is neither Bridge nor Megatron-LM is refused with what was looked for."""
    git(tmp_path, "init", "--quiet")
    assert "no commit" in error_of(tmp_path)
    commit(tmp_path, "Something", {"a.txt": "a"})
    assert "neither a Megatron Bridge checkout" in error_of(tmp_path)


def test_a_submodule_that_is_not_initialised(bridge: Path, tmp_path: Path) -> None:
    """The command that initialises it is given, and works."""
    clone = tmp_path / "a clone"
    git(tmp_path, "clone", "--quiet", str(bridge), str(clone))
    message = error_of(clone)
    assert "is not initialised" in message
    git(tmp_path, *shlex.split(message.split("Run: ")[1])[1:])
    with open_codebase(clone) as code:
        assert code.bridge is not None


@pytest.mark.parametrize("name", ["no-such-branch", "0123456789012345678901234567890123456789", "", "--all"])
def test_unknown_commits(mlm: tuple[Path, list[str]], name: str) -> None:
    """A commit that isn't in the clone is named, with the fetch that may bring it."""
    message = error_of(mlm[0], bad=name)
    assert "git -C" in message or "no name of a commit" in message


def test_changed_files_are_refused_unless_allowed(bridge: Path) -> None:
    """Changes in tracked files of either repository stop the search: runs use committed code only."""
    for file in (bridge / "src/megatron/bridge/__init__.py", bridge / "3rdparty/Megatron-LM/README.md"):
        before = file.read_text(encoding="utf-8")
        file.write_text("changed", encoding="utf-8")
        assert file.name in error_of(bridge)
        assert "--allow-dirty" in error_of(bridge)
        with open_codebase(bridge, allow_dirty=True) as code:
            commit_range(code, "HEAD~1", "HEAD")
        file.write_text(before, encoding="utf-8")
    (bridge / "untracked.txt").write_text("x", encoding="utf-8")
    git(bridge / "3rdparty/Megatron-LM", "checkout", "--quiet", "HEAD~1")
    with open_codebase(bridge):
        pass


def test_ends_in_the_wrong_order(mlm: tuple[Path, list[str]]) -> None:
    """Swapped ends are swapped back in the message."""
    assert "Swap them: --good HEAD~2 --bad HEAD" in error_of(mlm[0], good="HEAD", bad="HEAD~2")


def test_equal_ends(mlm: tuple[Path, list[str]]) -> None:
    """One commit is no range."""
    assert "the same commit" in error_of(mlm[0], good="HEAD", bad="main")


def test_ends_on_two_branches(mlm: tuple[Path, list[str]]) -> None:
    """If good is no ancestor of bad their merge base is named."""
    folder, shas = mlm
    git(folder, "checkout", "--quiet", "-b", "dev", shas[2])
    commit(folder, "On dev", {"d.txt": "d"})
    assert f"merge base is {shas[2][:10]}" in error_of(folder, good="dev", bad="main")
    git(folder, "checkout", "--quiet", "--orphan", "alone")
    commit(folder, "Alone", {"e.txt": "e"})
    assert "no common history" in error_of(folder, good="main", bad="alone")


def test_shallow_clones(mlm: tuple[Path, list[str]], tmp_path: Path) -> None:
    """A shallow clone that lacks the good end says how to deepen it; one that holds the range is fine."""
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "3", f"file://{mlm[0]}", str(shallow))
    message = error_of(shallow, good=mlm[1][0])
    assert "shallow" in message
    assert "--unshallow" in message
    with open_codebase(shallow) as code:
        assert len(commit_range(code, "HEAD~2", "HEAD").commits) == 2


def test_reading_changes_nothing(bridge: Path) -> None:
    """Not one file of the checkout or its git folders is written, not even the index."""
    os.utime(bridge / "src/megatron/bridge/__init__.py", (1, 1))
    before = snapshot(bridge)
    with open_codebase(bridge) as code:
        commits = commit_range(code, "HEAD~3", "HEAD")
        changed_files(code.mcore, commits.bad)
        github_name(code.mcore)
    assert snapshot(bridge) == before
