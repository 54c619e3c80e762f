"""Trees of our own for the code of a run: Megatron-Core's at some commit, Bridge's beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.pairs import pair_of
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.worktree import BRIDGE_UNREAD, MCORE_UNREAD, WorkTree
from lossbisect.train.types import Sources

__all__ = ["TreePair", "TreePool"]


class TreePair:
    """The trees of one run at a time, kept from run to run: the next commit's files are mostly the last one's."""

    def __init__(
        self, code: CodeBase, folder: Path, *, bridge_commit: str | None, searched: Searched = Searched.MCORE
    ) -> None:
        """Use the user's repositories as sources; the trees are made when a commit is first checked out.

        Args:
            code: The user's checkout.
            folder: Where the trees go: ``mcore`` and ``bridge`` in it.
            bridge_commit: Commit that Bridge stays at; None: there is none, or Bridge is searched.
            searched: Whose commits are checked out; with Bridge's the Megatron-LM that each pins.
        """
        self._code = code
        self._folder = folder
        self._bridge_commit = bridge_commit if code.bridge is not None else None
        self._searched = searched
        self._mcore: WorkTree | None = None
        self._bridge: WorkTree | None = None

    def sources(self, commit: str) -> Sources:
        """What a run of ``commit`` from these trees is asked to use; nothing is checked out."""
        mcore, bridge = pair_of(self._code, commit, bridge_commit=self._bridge_commit, searched=self._searched)
        return Sources(
            mcore=self._folder / "mcore",
            bridge=self._folder / "bridge" if bridge else None,
            mcore_commit=mcore,
            bridge_commit=bridge,
            is_ours=True,
        )

    def checkout(self, commit: str) -> Sources:
        """Make the files those of ``commit``, and the other repository's those of the commit that goes with it.

        Raises:
            GitError: A commit can't be checked out.
        """
        sources = self.sources(commit)
        assert sources.mcore_commit is not None, "trees are of commits"
        if self._mcore is None:
            self._mcore = WorkTree(self._code.mcore, self._folder / "mcore", leave_out=MCORE_UNREAD)
        self._mcore.checkout(sources.mcore_commit)
        if sources.bridge_commit is not None and self._code.bridge is not None:
            if self._bridge is None:
                self._bridge = WorkTree(self._code.bridge, self._folder / "bridge", leave_out=BRIDGE_UNREAD)
            self._bridge.checkout(sources.bridge_commit)
        return sources

    def remove(self) -> None:
        """Delete the trees, and the folder if nothing else is in it."""
        for tree in (self._mcore, self._bridge):
            if tree is not None:
                tree.remove()
        self._mcore = self._bridge = None
        with suppress(OSError):
            self._folder.rmdir()


class TreePool:
    """As many tree pairs as runs go on at once. A pair that is free is used again; safe from several threads."""

    def __init__(
        self, code: CodeBase, folder: Path, *, bridge_commit: str | None, searched: Searched = Searched.MCORE
    ) -> None:
        """As `TreePair`; each pair gets a folder of its own in ``folder``."""
        self._code = code
        self._folder = folder
        self._bridge_commit = bridge_commit
        self._searched = searched
        self._pairs: list[TreePair] = []
        self._free: list[TreePair] = []
        self._lock = threading.Lock()

    @contextmanager
    def lend(self) -> Iterator[TreePair]:
        """A pair that nobody else has until the block ends."""
        with self._lock:
            pair = self._free.pop() if self._free else self._new()
        try:
            yield pair
        finally:
            with self._lock:
                self._free.append(pair)

    def close(self) -> None:
        """Delete all trees."""
        with self._lock:
            for pair in self._pairs:
                pair.remove()
            self._pairs, self._free = [], []

    def _new(self) -> TreePair:
        folder = self._folder / f"{len(self._pairs) + 1}"
        pair = TreePair(self._code, folder, bridge_commit=self._bridge_commit, searched=self._searched)
        self._pairs.append(pair)
        return pair
