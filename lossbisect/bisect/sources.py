"""The code of one run: a checkout as it is, one commit of it in trees of our own, or the installed packages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lossbisect.bisect.codebase import SUBMODULE, CodeBase, open_codebase
from lossbisect.bisect.names import resolve
from lossbisect.bisect.trees import TreePair
from lossbisect.bisect.vanished import within_reach
from lossbisect.errors import GitError
from lossbisect.train import cache_directory
from lossbisect.train.types import Sources

__all__ = ["checked_out", "sources_of"]


def checked_out(code: CodeBase) -> Sources:
    """The files that are checked out, said to be at their HEADs."""
    is_bridge = code.bridge is not None
    return Sources(
        mcore=code.root / SUBMODULE if is_bridge else code.root,
        bridge=code.root if is_bridge else None,
        mcore_commit=code.mcore_head,
        bridge_commit=code.bridge_commit,
    )


@contextmanager
def sources_of(repo: Path | None, commit: str | None, trees: Path) -> Iterator[Sources]:
    """The code to run.

    Args:
        repo: A Bridge or Megatron-LM checkout; None: the installed packages.
        commit: Megatron-LM's commit, run from trees of our own; None: the checkout as it is, changed files included.
        trees: Folder for those trees; they are removed at the end.

    Raises:
        GitError: The checkout or the commit isn't what was said.
    """
    if repo is None:
        if commit is not None:
            raise GitError(f"--commit {commit} needs the checkout that holds it: add --repo PATH.")
        yield Sources()
        return
    with open_codebase(repo, allow_dirty=True) as code:
        if commit is None:
            here = checked_out(code)
            # A changed tree is run as it is: the result speaks of these files, not of a commit.
            yield Sources(mcore=here.mcore, bridge=here.bridge)
            return
        with within_reach(code, [commit], cache_directory()) as reach:
            pair = TreePair(reach.code, trees, bridge_commit=code.bridge_commit)
            try:
                yield pair.checkout(resolve(reach.code, reach.known(commit)))
            finally:
                pair.remove()
