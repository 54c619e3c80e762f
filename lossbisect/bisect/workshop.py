"""Commits of our own: a commit of the user's with changes on top, made in repositories of ours.

Such a commit depends on the commit, the changes and their order alone, so the same run has the same name each time, on
any machine. Two repositories make it. The *library* knows the user's objects and reads them; the *press* knows none of
them and writes: git renews the time of an object that it would write and finds there already, and the user's stay as
they are.
"""

import os
import shutil
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.repository import ask
from lossbisect.bisect.worktree import MCORE_UNREAD, borrow, empty_repository
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["Change", "Patch", "Workshop"]

_WHO = "lossbisect <lossbisect@invalid> 946684800 +0000"
"""Author and committer; a fixed time, so that the same content is the same commit."""

_UNREAD = (".*", "*.md", "*.rst")
"""Files that no run reads, beside those in the folders that trees of ours leave out: CI and words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """A patch, as a file holds it.

    Attributes:
        name: What a person calls it.
        text: What ``git diff`` prints; bytes that aren't UTF-8 as surrogates.
    """

    name: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What leads from one commit to another, merged line by line as ``git cherry-pick`` and ``git revert`` do.

    Attributes:
        name: What a person calls it.
        before: Full SHA.
        after: Full SHA.
    """

    name: str
    before: str
    after: str


class Workshop:
    """Makes commits. Safe from several threads.

    Attributes:
        repo: Our library, which knows the user's commits and those that were made here.
    """

    def __init__(self, source: "Repo", folder: Path) -> None:
        """Borrow the objects of a repository.

        Args:
            source: The repository.
            folder: The folder to make ours in; what was there goes.

        Raises:
            GitError: It can't be made there.
        """
        self._folder = folder
        self._press = empty_repository(folder / "press", like=source)
        self._tree = folder / "library"
        self.repo = borrow(source, self._tree, self._press)
        ask(self.repo, "config", "core.symlinks", "false")  # a link's target is merged, and read, as text
        self._lock = threading.Lock()
        self._made: dict[tuple[str, tuple[Patch | Change, ...]], str] = {}

    def on_top(self, commit: str, changes: Sequence[Patch | Change]) -> str:
        """The full SHA of the commit with the changes on top; itself if they change nothing that a run reads.

        Args:
            commit: Full SHA.
            changes: In this order. What they change in folders that no run reads is left out, and a patch that the
                commit holds already too.

        Raises:
            GitError: One of them doesn't apply.
        """
        if not changes:
            return commit
        key = (commit, tuple(changes))
        with self._lock:
            if key not in self._made:
                self._made[key] = self._make(commit, changes)
            return self._made[key]

    def close(self) -> None:
        """Delete the repositories."""
        self.repo.close()
        self._press.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, commit: str, changes: Sequence[Patch | Change]) -> str:
        made = commit
        for change in changes:
            try:
                made = self._apply(made, change)
            except GitError as error:
                raise GitError(f"{change.name} doesn't apply: {_what_git_said(error)}") from error
        return made

    def _apply(self, commit: str, change: Patch | Change) -> str:
        for left in (path for path in self._tree.iterdir() if path.name != ".git"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        ask(self.repo, "read-tree", commit)
        modes = self._patched(change) if isinstance(change, Patch) else self._merged(commit, change)
        return self._print(commit, change.name, modes)

    def _patched(self, patch: Patch) -> Mapping[str, str]:
        """Write the files that a patch touches, patched, into the library's folder; their modes before that."""
        file = self._tree / ".git" / "patch"
        file.write_bytes(patch.text.encode("utf-8", "surrogateescape"))
        unread = [f"--exclude={pattern}" for pattern in (*(f"{folder}/*" for folder in MCORE_UNREAD), *_UNREAD)]
        rows = ask(self.repo, "apply", "--numstat", "-z", *unread, str(file)).split("\0")
        paths = [row.split("\t")[2] for row in rows if row.count("\t") == 2]
        self._lay_out(paths)
        command = ["apply", "--whitespace=nowarn", *unread]
        try:
            ask(self.repo, *command, str(file))
        except GitError:
            try:
                ask(self.repo, *command, "--check", "--reverse", str(file))
            except GitError:
                raise
            return {}  # the commit holds it already
        return dict.fromkeys(paths, "") | self._entries(paths)

    def _merged(self, commit: str, change: Change) -> Mapping[str, str]:
        """Write the files that a change touches, merged, into the library's folder; their modes after it."""
        names = ask(self.repo, "diff-tree", "-r", "-z", "--name-only", "--no-renames", change.before, change.after)
        paths = [name for name in names.split("\0") if name and not _is_unread(name)]
        sides = []
        for side, sha in (("before", change.before), ("after", change.after)):
            ask(self.repo, "read-tree", sha)
            sides.append(self._tree / ".git" / side)
            shutil.rmtree(sides[-1], ignore_errors=True)
            self._lay_out(paths, f"--prefix={sides[-1]}/")
        modes = self._entries(paths)
        ask(self.repo, "read-tree", commit)
        self._lay_out(paths)
        for path in paths:
            self._merge(path, *(side / path for side in sides))
        return dict.fromkeys(paths, "") | self._entries(paths) | modes

    def _merge(self, path: str, before: Path, after: Path) -> None:
        ours = self._tree / path
        if _content(ours) == _content(before):
            ours.unlink(missing_ok=True)
            if after.exists():
                ours.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(after, ours)
        elif _content(ours) != _content(after):
            if not (ours.exists() and before.exists() and after.exists()):
                raise GitError(f"failed: {path} is not in all of the commits")
            try:
                ask(self.repo, "merge-file", "--quiet", str(ours), str(before), str(after))
            except GitError as error:
                raise GitError(f"failed: {path} was changed in the same place") from error

    def _lay_out(self, paths: Iterable[str], *where: str) -> None:
        """Write the files of the library's index at these paths, those that are there."""
        if there := list(self._entries(paths)):
            ask(self.repo, "checkout-index", "--force", "--quiet", *where, "--", *there)

    def _entries(self, paths: Iterable[str]) -> dict[str, str]:
        """The mode of each path that the library's index holds."""
        wanted = [f":(top,literal){path}" for path in paths]
        rows = ask(self.repo, "ls-files", "-s", "-z", "--full-name", "--", *wanted) if wanted else ""
        entries = (row.split("\t", 1) for row in rows.split("\0") if row)
        return {path: about.split()[0] for about, path in entries}

    def _print(self, parent: str, name: str, modes: Mapping[str, str]) -> str:
        """A commit whose files at these paths are those in the library's folder, with these modes; empty: as there."""
        shutil.copy(Path(self.repo.git_dir) / "index", Path(self._press.git_dir) / "index")
        for path, known in modes.items():
            file = self._tree / path
            if not file.exists():
                ask(self._press, "update-index", "--force-remove", "--", path)
                continue
            blob = ask(self._press, "hash-object", "-w", "--no-filters", "--", str(file))
            mode = known or ("100755" if file.stat().st_mode & stat.S_IXUSR else "100644")
            ask(self._press, "update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
        tree = ask(self._press, "write-tree", "--missing-ok")
        if tree == ask(self.repo, "rev-parse", f"{parent}^{{tree}}"):
            return parent
        file = Path(self._press.git_dir) / "commit"
        text = f"tree {tree}\nparent {parent}\nauthor {_WHO}\ncommitter {_WHO}\n\nlossbisect: {name}\n"
        file.write_bytes(os.fsencode(text))
        return ask(self._press, "hash-object", "-t", "commit", "-w", "--", str(file))


def _is_unread(path: str) -> bool:
    return path.split("/")[0] in MCORE_UNREAD or any(fnmatch(path, pattern) for pattern in _UNREAD)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _what_git_said(error: GitError) -> str:
    return str(error).partition("failed: ")[2].removeprefix("error: ")
