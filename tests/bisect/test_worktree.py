"""Our own trees: exactly one commit's files, and nothing of the user's is touched."""

import stat
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.worktree import WorkTree
from lossbisect.errors import GitError
from tests.bisect.support import commit, git, make_bridge, make_megatron_lm, snapshot


def files_of(tree: Path) -> dict[str, str]:
    """The tree's files without git's own folder."""
    found = (path for path in tree.rglob("*") if path.is_file() and ".git" not in path.relative_to(tree).parts)
    return {str(path.relative_to(tree)): path.read_text(encoding="utf-8") for path in found}


def test_a_tree_is_exactly_its_commit(tmp_path: Path) -> None:
    """Byte code, built helpers, ignored files and edits of another commit are gone after a checkout."""
    source = tmp_path / "with blank é"
    shas = make_megatron_lm(source, 3)
    commit(source, "Ignore", {".gitignore": "*.pyc\nbuild/\n"})
    with open_codebase(source) as code:
        tree = WorkTree(code.mcore, tmp_path / "trée s" / "mcore")
        tree.checkout(code.mcore_head)
        (tree.path / "megatron/core/__pycache__").mkdir()
        (tree.path / "megatron/core/__pycache__/value.cpython-312.pyc").write_text("stale", encoding="utf-8")
        (tree.path / "build").mkdir()
        (tree.path / "build/helpers.so").write_text("stale", encoding="utf-8")
        (tree.path / "megatron/core/value.py").write_text("edited", encoding="utf-8")
        git(tree.path / "build", "init", "--quiet")
        tree.checkout(shas[1])
        assert files_of(tree.path) == {
            "megatron/core/__init__.py": "",
            "megatron/core/value.py": "VALUE = 1\n",
            "README.md": "Megatron\n",
        }
        assert git(tree.path, "rev-parse", "HEAD") == shas[1]
        assert git(tree.path, "status", "--porcelain", "--ignored") == ""
        tree.remove()
        assert not tree.path.exists()


def test_a_package_that_is_gone_leaves_no_folder(tmp_path: Path) -> None:
    """Byte code of another commit would leave an empty folder, which Python imports as a namespace package."""
    source = tmp_path / "mlm"
    make_megatron_lm(source, 0)
    old = commit(source, "Old", {"megatron/core/a.py": "A = 1\n", "megatron/core/extra/deep/b.py": "B = 1\n"})
    git(source, "rm", "--quiet", "-r", "megatron/core/extra")
    new = commit(source, "New", {"megatron/core/a.py": "A = 2\n"})
    with open_codebase(source) as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(old)
        for name in ("__pycache__/a", "__pycache__/__init__", "extra/deep/__pycache__/b"):
            compiled = tree.path / "megatron/core" / f"{name}.cpython-312.pyc"
            compiled.parent.mkdir(exist_ok=True)
            compiled.write_text("compiled", encoding="utf-8")
        tree.checkout(new)
    assert not (tree.path / "megatron/core/__pycache__").exists()
    assert not (tree.path / "megatron/core/extra").exists()


def test_folders_that_no_run_reads_are_left_out(tmp_path: Path) -> None:
    """A top-level folder may be left out, and only there; the tree still counts as clean."""
    source = tmp_path / "mlm"
    make_megatron_lm(source, 0)
    sha = commit(source, "Tests", {"tests/test_a.py": "", "megatron/core/tests/b.py": ""})
    with open_codebase(source) as code:
        tree = WorkTree(code.mcore, tmp_path / "tree", leave_out=("tests",))
        tree.checkout(sha)
    assert not (tree.path / "tests").exists()
    assert (tree.path / "megatron/core/tests/b.py").exists()
    assert git(tree.path, "status", "--porcelain", "--ignored") == ""


def test_the_users_checkout_is_untouched(tmp_path: Path) -> None:
    """No file of the user's checkout changes: refs, index, submodule and git folders included."""
    make_megatron_lm(tmp_path / "mlm", 3)
    bridge = tmp_path / "bridge"
    make_bridge(bridge, tmp_path / "mlm")
    before = snapshot(bridge)
    with open_codebase(bridge) as code:
        assert code.bridge is not None
        assert code.bridge_commit is not None
        mcore = WorkTree(code.mcore, tmp_path / "trees/mcore")
        frozen = WorkTree(code.bridge, tmp_path / "trees/bridge")
        mcore.checkout(code.mcore_head)
        frozen.checkout(code.bridge_commit)
        mcore.checkout(git(bridge / "3rdparty/Megatron-LM", "rev-parse", "HEAD~2"))
    assert snapshot(bridge) == before
    assert (frozen.path / "src/megatron/bridge/__init__.py").exists()
    assert list((frozen.path / "3rdparty/Megatron-LM").iterdir()) == []


def test_the_users_hooks_and_filters_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Global hooks, filters (LFS too), line-end conversion and recursion into submodules play no part."""
    source = tmp_path / "mlm"
    make_megatron_lm(source, 1)
    attributes = {".gitattributes": "*.bin filter=lfs\n*.up filter=shout\n", "a.bin": "pointer\n", "b.up": "quiet\n"}
    commit(source, "Filters", attributes)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\n", encoding="utf-8")
        (hooks / name).chmod(stat.S_IRWXU)
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\tfsmonitor = {hooks}/post-checkout\n"
        "[submodule]\n\trecurse = true\n"
        '[filter "lfs"]\n\tprocess = false\n\tsmudge = false\n\trequired = true\n'
        '[filter "shout"]\n\tsmudge = tr a-z A-Z\n\tclean = tr A-Z a-z\n\trequired = true\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    with open_codebase(source, allow_dirty=True) as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(code.mcore_head)
    assert not (tmp_path / "hook-ran").exists()
    assert (tree.path / "a.bin").read_bytes() == b"pointer\n"
    assert (tree.path / "b.up").read_bytes() == b"quiet\n"
    assert (tree.path / "README.md").read_bytes() == b"Megatron\n"


@pytest.mark.parametrize("kind", ["--shared", "--reference"])
def test_a_clone_with_alternates_of_its_own(tmp_path: Path, kind: str) -> None:
    """The user's clone may itself borrow its objects from another."""
    shas = make_megatron_lm(tmp_path / "origin", 3)
    options = ["--shared"] if kind == "--shared" else ["--reference", str(tmp_path / "origin")]
    git(tmp_path, "clone", "--quiet", *options, str(tmp_path / "origin"), "clone")
    relative = tmp_path / "clone/.git/objects/info/alternates"
    if kind == "--reference":
        relative.write_text("../../../origin/.git/objects\n", encoding="utf-8")
    with open_codebase(tmp_path / "clone") as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        for sha in shas:
            tree.checkout(sha)
    assert git(tree.path, "rev-parse", "HEAD") == shas[-1]


@pytest.mark.parametrize("name", ['"quoted', "#hash", "new\nline"])
def test_odd_names_of_the_users_folder(tmp_path: Path, name: str) -> None:
    """Names that git's alternates file would misread are quoted."""
    shas = make_megatron_lm(tmp_path / name, 1)
    with open_codebase(tmp_path / name) as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(shas[0])
    assert (tree.path / "README.md").exists()


def test_a_partial_clone_fetches_what_it_lacks(tmp_path: Path) -> None:
    """Files that a blobless clone hasn't got are fetched into the tree's own objects, not the user's."""
    origin = tmp_path / "origin"
    shas = make_megatron_lm(origin, 3)
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{origin}", str(clone))
    before = snapshot(clone)
    with open_codebase(clone) as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(shas[1])
        assert files_of(tree.path)["megatron/core/value.py"] == "VALUE = 1\n"
        origin.rename(tmp_path / "gone")
        with pytest.raises(GitError):
            tree.checkout(shas[2])
    assert snapshot(clone) == before


def test_a_shallow_clone(tmp_path: Path) -> None:
    """A tree can move between the commits that a shallow clone has."""
    make_megatron_lm(tmp_path / "origin", 4)
    git(tmp_path, "clone", "--quiet", "--depth", "2", f"file://{tmp_path}/origin", "clone")
    with open_codebase(tmp_path / "clone") as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(code.mcore_head)
        tree.checkout(git(tmp_path / "clone", "rev-parse", "HEAD~1"))
    assert (tree.path / "megatron/core/value.py").read_text(encoding="utf-8") == "VALUE = 3\n"


def test_a_linked_worktree_of_the_user(tmp_path: Path) -> None:
    """The user may work in a linked worktree; objects are then those of the main one."""
    shas = make_megatron_lm(tmp_path / "main", 2)
    git(tmp_path / "main", "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), shas[1])
    with open_codebase(tmp_path / "linked") as code:
        assert code.mcore_head == shas[1]
        tree = WorkTree(code.mcore, tmp_path / "tree")
        tree.checkout(shas[2])
    assert git(tmp_path / "main", "worktree", "list").count("\n") == 1


def test_an_unknown_commit_is_an_error(tmp_path: Path) -> None:
    """A commit that isn't there is said so, in one line."""
    make_megatron_lm(tmp_path / "mlm", 1)
    with open_codebase(tmp_path / "mlm") as code:
        tree = WorkTree(code.mcore, tmp_path / "tree")
        with pytest.raises(GitError, match="'git checkout' failed"):
            tree.checkout("0" * 39 + "1")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """A half-made tree, with its lock files, is replaced by a new one."""
    shas = make_megatron_lm(tmp_path / "mlm", 1)
    (tmp_path / "tree/.git").mkdir(parents=True)
    (tmp_path / "tree/.git/index.lock").write_text("", encoding="utf-8")
    with open_codebase(tmp_path / "mlm") as code:
        WorkTree(code.mcore, tmp_path / "tree").checkout(shas[0])
    assert (tmp_path / "tree/README.md").exists()
