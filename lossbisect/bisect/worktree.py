"""Working trees of our own, one commit's files at a time.

The user's checkout is never touched. A tree is a repository of its own whose objects are the user's (through
``objects/info/alternates``): no ref, no index, not even ``.git/worktrees`` of the user is written. Nothing of the
user's set-up that changes files takes part: no hook, no filter (LFS or other), no line-end conversion.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.repository import ask
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["BRIDGE_UNREAD", "MCORE_UNREAD", "WorkTree", "borrow", "empty_repository"]

MCORE_UNREAD = ("docs", "examples", "images", "tests")
BRIDGE_UNREAD = ("docs", "examples", "tests", "tutorials")
"""Folders that no training run reads."""

_OWN_SETTINGS = {
    "core.bare": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.sparseCheckout": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class WorkTree:
    """A folder that holds exactly one commit's files.

    Attributes:
        path: The folder.
    """

    def __init__(self, source: "Repo", path: Path, *, leave_out: Sequence[str] = ()) -> None:
        """Make the tree at ``path``, empty, and remove what an earlier process left there.

        Args:
            source: The repository whose commits it will hold.
            path: The folder to make.
            leave_out: Top-level folders that no run reads; their files are neither fetched nor written.

        Raises:
            GitError: It can't be made there.
        """
        self.path = path
        self._repo = borrow(source, path)
        if leave_out:
            patterns = ["/*", *(f"!/{folder}/" for folder in leave_out)]
            (path / ".git" / "info").mkdir()
            (path / ".git" / "info" / "sparse-checkout").write_text("\n".join(patterns) + "\n", encoding="utf-8")
            ask(self._repo, "config", "core.sparseCheckout", "true")

    def checkout(self, sha: str) -> None:
        """Make the files those of a commit, and nothing else: what another commit's run has built goes.

        Raises:
            GitError: The commit can't be checked out, such as when a partial clone can't fetch its files.
        """
        ask(self._repo, "checkout", "--quiet", "--detach", "--force", sha)
        ask(self._repo, "clean", "-ffdxq")
        changed = ask(
            self._repo, "status", "--porcelain", "--untracked-files=all", "--ignored", "--ignore-submodules=all"
        ).splitlines()
        if changed:
            raise GitError(f"{self.path}: not exactly the files of {sha[:10]} after its checkout: {changed[0]}")

    def remove(self) -> None:
        """Delete the folder."""
        self._repo.close()
        shutil.rmtree(self.path, ignore_errors=True)


def borrow(source: "Repo", path: Path, *others: "Repo") -> "Repo":
    """A repository of our own at ``path``, empty, with the objects of others; what was there before is removed.

    Args:
        source: The repository whose commits it knows.
        path: The folder to make.
        others: More repositories whose objects it knows.

    Raises:
        GitError: It can't be made there.
    """
    repo = empty_repository(path, source, *others, like=source)
    _copy_promises(source, repo)
    return repo


def empty_repository(path: Path, *sources: "Repo", like: "Repo") -> "Repo":
    """A repository of our own at ``path`` without a commit; what was there goes.

    Args:
        path: The folder to make.
        sources: The repositories whose objects it knows.
        like: Its objects have this repository's format.

    Raises:
        GitError: It can't be made there.
    """
    import git

    try:
        if path.exists():
            shutil.rmtree(path)
        _write_empty_repository(path / ".git", [Path(each.common_dir).resolve() / "objects" for each in sources])
    except OSError as error:
        raise GitError(f"{path}: no working tree can be made there: {error}. Choose another --work-dir.") from error
    repo = git.Repo(path, expand_vars=False)
    _copy_format(like, repo)
    for setting, value in _OWN_SETTINGS.items() | _no_filters(repo).items():
        ask(repo, "config", setting, value)
    return repo


def _write_empty_repository(git_dir: Path, objects: Sequence[Path]) -> None:
    """What ``git init`` makes, without its templates, and with other repositories' objects."""
    (git_dir / "objects" / "info").mkdir(parents=True)
    (git_dir / "refs" / "heads").mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/unborn\n", encoding="utf-8")
    (git_dir / "config").write_text("[core]\n\trepositoryFormatVersion = 1\n", encoding="utf-8")
    (git_dir / "objects" / "info" / "alternates").write_bytes(b"".join(map(_alternate, objects)))


def _alternate(objects: Path) -> bytes:
    """A line of ``objects/info/alternates``: names that git would misread are quoted as C strings."""
    name = os.fsencode(objects)
    if name.startswith((b'"', b"#")) or b"\n" in name:
        escaped = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        return b'"' + escaped + b'"\n'
    return name + b"\n"


def _copy_format(source: "Repo", target: "Repo") -> None:
    if ask(source, "rev-parse", "--show-object-format") == "sha256":
        ask(target, "config", "extensions.objectFormat", "sha256")
    shallow = Path(source.common_dir) / "shallow"
    if shallow.exists():
        shutil.copyfile(shallow, Path(target.git_dir) / "shallow")


def _copy_promises(source: "Repo", target: "Repo") -> None:
    """A partial clone fetches files when first needed: let the tree ask the same remote, into its own objects."""
    listed = ask(source, "config", "--local", "--get-regexp", r"^remote\..*\.promisor$", allowed=(0, 1))
    for line in listed.splitlines():
        remote = line.split(" ")[0].removesuffix(".promisor")
        for key in ("promisor", "partialclonefilter"):
            value = ask(source, "config", "--get", f"{remote}.{key}", allowed=(0, 1))
            if value:
                ask(target, "config", f"{remote}.{key}", value)
        url = ask(source, "config", "--get", f"{remote}.url", allowed=(0, 1))
        folder = Path(source.working_tree_dir or source.common_dir) / url
        ask(target, "config", f"{remote}.url", str(folder.resolve()) if url and folder.is_dir() else url)
        ask(target, "config", "extensions.partialClone", remote.removeprefix("remote."))


def _no_filters(repo: "Repo") -> dict[str, str]:
    """Settings that switch off every filter of the user's own configuration; LFS files stay pointers."""
    listed = ask(repo, "config", "--name-only", "--get-regexp", r"^filter\.", allowed=(0, 1))
    names = {"lfs"} | {key.removeprefix("filter.").rsplit(".", 1)[0] for key in listed.splitlines()}
    return {
        f"filter.{name}.{key}": value
        for name in names
        for key, value in (("process", ""), ("smudge", ""), ("clean", ""), ("required", "false"))
    }
