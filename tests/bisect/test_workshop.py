"""Commits of our own: what they hold, what they are called, and that nothing of the user's is written."""

from collections.abc import Iterator
from pathlib import Path

import git as gitpython
import pytest

from lossbisect.bisect.workshop import Change, Patch, Workshop
from lossbisect.errors import GitError
from tests.bisect.support import commit, git, snapshot

CODE = "megatron/core/a.py"
LINES = [f"line {n}\n" for n in range(30)]


def text(**changed: str) -> str:
    """Thirty lines, some of them changed: ``l3="other"``."""
    return "".join(changed.get(f"l{n}", line.rstrip("\n")) + "\n" for n, line in enumerate(LINES))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """An empty repository."""
    folder = tmp_path / "mlm"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


@pytest.fixture
def workshop(repo: Path, tmp_path: Path) -> Iterator[Workshop]:
    """A workshop of that repository."""
    with gitpython.Repo(repo) as source:
        made = Workshop(source, tmp_path / "made")
        yield made
        made.close()
    assert not (tmp_path / "made").exists()


def show(workshop: Workshop, sha: str, path: str = CODE) -> str:
    """A file of a commit that was made."""
    return str(workshop.repo.git.show(f"{sha}:{path}")) + "\n"


def test_what_one_commit_changed_is_taken_back_under_later_changes(repo: Path, workshop: Workshop) -> None:
    """Lines moved and changed since then stay; the same question gives the same commit; nothing is touched."""
    start = commit(repo, "Start", {CODE: text(), "tests/a.py": "1\n"})
    culprit = commit(repo, "Break", {CODE: text(l10="broken"), "tests/a.py": "2\n", "megatron/core/new.py": "1\n"})
    later = text(l10="broken", l14="later", l0="zero\nand more")
    last = commit(repo, "Go on", {CODE: later, "tests/a.py": "3\n"})
    before = snapshot(repo)
    revert = Change(name="the revert", before=culprit, after=start)
    made = workshop.on_top(last, [revert])
    assert show(workshop, made) == text(l14="later", l0="zero\nand more")
    assert "megatron/core/new.py" not in workshop.repo.git.ls_tree("-r", "--name-only", made)
    assert show(workshop, made, "tests/a.py") == "3\n"
    assert workshop.repo.git.rev_parse(f"{made}^") == last
    assert workshop.on_top(last, [revert]) == made
    assert snapshot(repo) == before


def test_a_change_of_the_same_lines_is_no_clean_revert(repo: Path, workshop: Workshop) -> None:
    """Where a later commit changed the very lines, the reason names the file."""
    start = commit(repo, "Start", {CODE: text()})
    culprit = commit(repo, "Break", {CODE: text(l10="broken")})
    last = commit(repo, "Break more", {CODE: text(l10="broken more")})
    with pytest.raises(GitError, match=rf"the revert doesn't apply: {CODE} was changed in the same place"):
        workshop.on_top(last, [Change(name="the revert", before=culprit, after=start)])


def test_a_file_that_is_gone_is_no_clean_revert(repo: Path, workshop: Workshop) -> None:
    """A file that a later commit deleted can't be changed back."""
    start = commit(repo, "Start", {CODE: text()})
    culprit = commit(repo, "Break", {CODE: text(l10="broken")})
    git(repo, "rm", "--quiet", CODE)
    last = commit(repo, "Delete", {"megatron/core/b.py": "1\n"})
    with pytest.raises(GitError, match="is not in all of the commits"):
        workshop.on_top(last, [Change(name="the revert", before=culprit, after=start)])


def test_odd_files_are_taken_back_too(repo: Path, workshop: Workshop) -> None:
    """Binary content, odd names, links and modes come back as they were."""
    (repo / "megatron").mkdir()
    (repo / "megatron/data é.bin").write_bytes(b"\x00\x01\xff" * 9)
    (repo / "megatron/link").symlink_to("core")
    (repo / "megatron/run.sh").write_text("#!/bin/sh\n")
    (repo / "megatron/run.sh").chmod(0o755)
    start = commit(repo, "Start", {CODE: text()})
    (repo / "megatron/data é.bin").write_bytes(b"\x02")
    (repo / "megatron/link").unlink()
    (repo / "megatron/run.sh").unlink()
    culprit = commit(repo, "Break", {})
    last = commit(repo, "Go on", {CODE: text(l3="three")})
    made = workshop.on_top(last, [Change(name="the revert", before=culprit, after=start)])
    wanted = workshop.repo.git.ls_tree("-r", start, "megatron/data é.bin", "megatron/link", "megatron/run.sh")
    assert workshop.repo.git.ls_tree("-r", made, "megatron/data é.bin", "megatron/link", "megatron/run.sh") == wanted


def test_changes_are_made_in_order(repo: Path, workshop: Workshop) -> None:
    """A patch and then a change on top of it; the other order is another commit."""
    start = commit(repo, "Start", {CODE: text()})
    other = commit(repo, "Change", {CODE: text(l20="twenty")})
    patch = Patch(
        name="fix.patch",
        text=f"--- a/{CODE}\n+++ b/{CODE}\n@@ -1,2 +1,2 @@\n-line 0\n+zero\n line 1\n",
    )
    change = Change(name=other, before=start, after=other)
    made = workshop.on_top(start, [patch, change])
    assert show(workshop, made) == text(l0="zero", l20="twenty")
    assert workshop.on_top(start, [change, patch]) != made
    assert show(workshop, workshop.on_top(start, [change, patch])) == show(workshop, made)


def test_what_no_run_reads_or_is_there_already_changes_nothing(repo: Path, workshop: Workshop) -> None:
    """A change of tests alone, and a patch that the commit holds, leave the commit as it is."""
    start = commit(repo, "Start", {CODE: text(), "tests/a.py": "1\n", ".gitlab/ci.yml": "1\n", "a.md": "1\n"})
    tests = commit(repo, "Tests", {"tests/a.py": "2\n", ".gitlab/ci.yml": "2\n", "a.md": "2\n"})
    assert workshop.on_top(tests, [Change(name="the revert", before=tests, after=start)]) == tests
    there = Patch(name="there.patch", text=f"--- a/{CODE}\n+++ b/{CODE}\n@@ -1,2 +1,2 @@\n-zero\n+line 0\n line 1\n")
    assert workshop.on_top(start, [there]) == start
