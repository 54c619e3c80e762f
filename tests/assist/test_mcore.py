"""The submodule switched and switched back: real repositories, and nothing of the user's lost."""

import json
import shlex
from pathlib import Path

import pytest

from lossbisect.assist.gitwrite import git_write
from lossbisect.assist.mcore import in_the_way, plan_restore, plan_switch, plan_sync, position, switch, sync_command
from lossbisect.errors import GitError, StateError
from tests.assist.support import README, SUBMODULE, Called, Made, call, drop
from tests.bisect.support import commit, git, snapshot

pytestmark = pytest.mark.usefixtures("environment")


def mcore(*arguments: str) -> Called:
    """``lossbisect mcore``."""
    return call("mcore", *arguments)


def head(made: Made) -> str:
    """What the submodule has checked out."""
    return git(made.submodule, "rev-parse", "HEAD")


def state(made: Made) -> tuple[object, ...]:
    """All that a switch and its restore together must leave as it was: files, HEAD, branches, stashes, other refs."""
    files = {
        str(path.relative_to(made.root)): path.read_bytes()
        for path in made.root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(made.root).parts[:1]
    }
    refs = git(made.submodule, "for-each-ref", "--format=%(refname) %(objectname)")
    symbolic = (made.root / ".git/modules" / SUBMODULE / "HEAD").read_text(encoding="utf-8")
    record = made.root / ".git/modules" / SUBMODULE / "lossbisect-mcore.json"
    return files, refs, symbolic, git(made.root, "status", "--porcelain"), record.exists()


def test_to_dev_and_back(made: Made) -> None:
    """'use dev' says what happens and which sync is right, and the printed command restores the very state."""
    before = state(made)
    done = mcore("use", "dev", "--repo", str(made.root))
    assert done.returncode == 0, done.stderr
    assert head(made) == made.dev
    assert (made.submodule / "megatron/core/extra.py").is_file()
    assert f"{made.main[2][:10]} (the main pin) -> {made.dev[:10]} (the dev pin)" in done.stdout
    assert "adds 1 commit and leaves out 1" in done.stdout
    assert "&& uv sync\n" in done.stdout
    back = shlex.split(done.stdout.rsplit("lossbisect mcore ", 1)[1])
    again = mcore(*back)
    assert again.returncode == 0, again.stderr
    assert "&& uv sync --locked" in again.stdout
    assert state(made) == before


def test_several_switches_are_taken_back_one_by_one(made: Made) -> None:
    """Each restore goes one switch back; after the last there is nothing to restore."""
    before = state(made)
    for name in ("dev", made.main[0], "origin/main"):
        switch(plan_switch(made.root, name))
    assert head(made) == made.main[3]
    for wanted in (made.main[0], made.dev, made.main[2]):
        switch(plan_restore(made.root))
        assert head(made) == wanted
    assert state(made) == before
    with pytest.raises(StateError, match="nothing to restore"):
        plan_restore(made.root)


def test_a_branch_of_ones_own_is_checked_out_again(made: Made) -> None:
    """Who stood on a branch stands on it again; if the branch has moved meanwhile its old commit is checked out."""
    git(made.submodule, "checkout", "--quiet", "-b", "mine")
    commit(made.submodule, "Mine", {"megatron/core/mine.py": "M = 1\n"})
    before = state(made)
    switch(plan_switch(made.root, "dev"))
    switch(plan_restore(made.root))
    assert state(made) == before
    switch(plan_switch(made.root, "dev"))
    mine = git(made.submodule, "rev-parse", "mine")
    git(made.submodule, "branch", "--force", "mine", made.main[0])
    plan = plan_restore(made.root)
    assert "the branch mine has moved" in plan.remark
    switch(plan)
    assert head(made) == mine
    assert git(made.submodule, "branch", "--show-current") == ""


def test_a_commit_that_no_branch_holds_is_kept_alive(made: Made) -> None:
    """Commits made on a detached HEAD outlive even a collection of garbage until they are restored."""
    lost = commit(made.submodule, "On no branch", {"megatron/core/lost.py": "L = 1\n"})
    before = state(made)
    switch(plan_switch(made.root, "main"))
    git(made.submodule, "reflog", "expire", "--expire=now", "--all")
    git(made.submodule, "gc", "--quiet", "--prune=now")
    switch(plan_restore(made.root))
    assert head(made) == lost
    assert state(made) == before


def test_what_is_not_here_is_fetched_and_nothing_else(made: Made) -> None:
    """A full SHA and a pull request come from the server; a commit that is here needs no server at all."""
    newest = commit(made.server, "Newer than the clone (#8)", {"megatron/core/new.py": ""})
    done = mcore("use", newest, "--repo", str(made.root))
    assert done.returncode == 0, done.stderr
    assert f"fetch {newest}" in done.stdout
    assert head(made) == newest
    done = mcore("use", "pull/7", "--repo", str(made.root))
    assert done.returncode == 0, done.stderr
    assert head(made) == made.pull
    git(made.submodule, "remote", "set-url", "origin", "/nowhere")
    switch(plan_switch(made.root, "dev"))
    assert head(made) == made.dev
    refused = mcore("use", "f" * 40, "--repo", str(made.root))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "git fetch" in refused.stderr
    assert head(made) == made.dev


@pytest.mark.parametrize("staged", [False, True])
def test_changed_files_are_refused_and_kept(made: Made, *, staged: bool) -> None:
    """A changed tracked file, staged or not, stops every switch; nothing is stashed and nothing moves."""
    (made.submodule / "megatron/core/value.py").write_text("V = 'mine'\n", encoding="utf-8")
    if staged:
        git(made.submodule, "add", "--all")
    before = snapshot(made.root)
    for arguments in (["use", "dev"], ["use", made.main[0]], ["use", "pull/7"]):
        done = mcore(*arguments, "--repo", str(made.root))
        assert done.returncode == 2
        assert "tracked files are changed (megatron/core/value.py)" in done.stderr
    assert snapshot(made.root) == before


@pytest.mark.parametrize("is_ignored", [False, True])
@pytest.mark.parametrize("name", ["megatron/core/extra.py", "megatron/core/extra.py/deeper.txt"])
def test_a_file_that_would_be_overwritten_is_refused_and_kept(made: Made, name: str, *, is_ignored: bool) -> None:
    """A file that git doesn't have, ignored ones too, is never overwritten by the other commit's."""
    file = made.submodule / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine", encoding="utf-8")
    if is_ignored:
        exclude = made.root / ".git/modules" / SUBMODULE / "info/exclude"
        exclude.write_text("extra.py\n", encoding="utf-8")
    done = mcore("use", "dev", "--repo", str(made.root))
    assert done.returncode == 2
    assert f"{name} would be overwritten" in done.stderr
    assert file.read_text(encoding="utf-8") == "mine"
    assert head(made) == made.main[2]


def test_other_files_that_git_does_not_know_stay(made: Made) -> None:
    """Untracked and ignored files that are in nobody's way are there before, during and after."""
    note = made.submodule / "note.txt"
    note.write_text("mine", encoding="utf-8")
    switch(plan_switch(made.root, "dev"))
    assert note.read_text(encoding="utf-8") == "mine"


def test_in_the_middle_of_something_is_refused(made: Made) -> None:
    """During a bisect of the user's own nothing is switched."""
    git(made.submodule, "bisect", "start")
    with pytest.raises(GitError, match="a bisect is under way"):
        plan_switch(made.root, "dev")


def test_a_plan_changes_nothing(made: Made) -> None:
    """With --plan, what would happen is told and not a byte of the checkout differs."""
    before = snapshot(made.root)
    done = mcore("use", "pull/7", "--plan", "--repo", str(made.root))
    assert done.returncode == 0
    assert "fetch pull/7/head" in done.stdout
    assert mcore("status", "--repo", str(made.root)).returncode == 0
    assert snapshot(made.root) == before


def test_already_there_is_no_move(made: Made) -> None:
    """Going where one is does nothing and leaves nothing to restore."""
    done = mcore("use", "main", "--repo", str(made.root))
    assert done.returncode == 0
    assert "already" in done.stdout
    assert mcore("restore", "--repo", str(made.root)).returncode == 2


def test_sync_follows_bridge(made: Made) -> None:
    """After a pull that moved the pin, 'sync' goes where Bridge now wants it."""
    git(made.root, "update-index", "--cacheinfo", f"160000,{made.main[3]},{SUBMODULE}")
    git(made.root, "commit", "--quiet", "--message", "Move the pin")
    assert position(made.root).checkout.behind == 1
    switch(plan_sync(made.submodule))  # from inside the submodule, too
    assert head(made) == made.main[3]
    assert position(made.root).checkout.behind == 0


def test_killed_between_record_and_checkout(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the process dies after the record and before the checkout, restore finds nothing to undo and says so."""
    before = state(made)

    def die(folder: Path, *arguments: str) -> None:
        if "checkout" in arguments:
            raise KeyboardInterrupt
        git_write(folder, *arguments)

    monkeypatch.setattr("lossbisect.assist.mcore.git_write", die)
    with pytest.raises(KeyboardInterrupt):
        switch(plan_switch(made.root, "dev"))
    monkeypatch.undo()
    assert head(made) == made.main[2]
    plan = plan_restore(made.root)
    assert plan.is_done
    switch(plan)
    assert state(made) == before


def test_no_submodule_and_no_bridge_are_one_line(made: Made, tmp_path: Path) -> None:
    """A submodule that isn't initialised, a Megatron-LM checkout and a broken record are told with the way on."""
    assert "has no submodule to switch" in mcore("status", "--repo", str(made.server)).stderr
    record = made.root / ".git/modules" / SUBMODULE / "lossbisect-mcore.json"
    record.write_text(json.dumps({"schema_version": 9}), encoding="utf-8")
    assert "not a record of 'lossbisect mcore'" in mcore("restore", "--repo", str(made.root)).stderr
    drop(made.submodule)
    made.submodule.mkdir()
    assert "submodule update --init" in mcore("use", "dev", "--repo", str(made.root)).stderr
    assert "not a git checkout" in mcore("status", "--repo", str(tmp_path)).stderr


def test_variables_of_another_repository_play_no_part(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a hook, git's variables name another repository: the submodule is switched all the same, and only it."""
    before = snapshot(made.server)
    monkeypatch.setenv("GIT_DIR", str(made.server / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(made.server))
    monkeypatch.setenv("GIT_INDEX_FILE", str(made.server / ".git/index"))
    switch(plan_switch(made.root, "dev"))
    assert snapshot(made.server) == before
    monkeypatch.undo()
    assert git(made.submodule, "rev-parse", "HEAD") == made.dev


@pytest.mark.parametrize(
    ("others", "files", "blocked"),
    [
        (["a"], ["b"], []),
        (["a"], ["a"], ["a"]),
        (["d/a"], ["d"], ["d/a"]),
        (["d"], ["d/a"], ["d"]),
        (["d/a", "x"], ["d/b"], []),
    ],
)
def test_what_is_in_the_way(others: list[str], files: list[str], blocked: list[str]) -> None:
    """The same path, a file where a folder comes, and a folder where a file comes; neighbours are not."""
    assert in_the_way(others, files) == blocked


def test_the_sync_command_is_the_readmes() -> None:
    """What the checkout's own README says beats the rule; without a word in it the rule holds."""
    assert sync_command(README, is_locked=True) == "uv sync --locked"
    assert sync_command(README, is_locked=False) == "uv sync"
    assert sync_command("", is_locked=True) == "uv sync --locked"
    other = "scripts/switch_mcore.sh dev # then: uv sync --all-extras"
    assert sync_command(other, is_locked=False) == "uv sync --all-extras"


def test_a_hook_that_fails_after_the_checkout_is_no_failure_of_it(made: Made) -> None:
    """With a hook that always fails the submodule is switched, and switched back, all the same."""
    before = state(made)
    hook = made.root / ".git/modules" / SUBMODULE / "hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    switch(plan_switch(made.root, "dev"))
    assert head(made) == made.dev
    switch(plan_restore(made.root))
    assert state(made) == before


def test_a_checkout_that_fails_leaves_no_record(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """When git refuses the checkout, the error is git's own and there is nothing to restore."""
    before = state(made)

    def refuse(folder: Path, *arguments: str) -> None:
        if "checkout" in arguments:
            raise GitError(f"{folder}: 'git checkout' failed: error: no room")
        git_write(folder, *arguments)

    monkeypatch.setattr("lossbisect.assist.mcore.git_write", refuse)
    with pytest.raises(GitError, match="no room"):
        switch(plan_switch(made.root, "dev"))
    assert state(made) == before


def test_commits_made_after_a_switch_survive_the_way_back(made: Made) -> None:
    """What was committed on the switched submodule is kept alive by a ref when it is restored."""
    switch(plan_switch(made.root, "dev"))
    mine = commit(made.submodule, "Mine, on dev", {"megatron/core/mine.py": ""})
    plan = plan_restore(made.root)
    assert mine[:10] in plan.remark
    switch(plan)
    assert head(made) == made.main[2]
    git(made.submodule, "reflog", "expire", "--expire=now", "--all")
    git(made.submodule, "gc", "--quiet", "--prune=now")
    assert git(made.submodule, "cat-file", "-t", mine) == "commit"
