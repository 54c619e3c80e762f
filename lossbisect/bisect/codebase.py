"""What a checkout is: Megatron Bridge with its submodule, or Megatron-LM."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.repository import ask, open_repository, quoted, where
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["SUBMODULE", "CodeBase", "open_codebase"]

SUBMODULE = "3rdparty/Megatron-LM"
"""Where Bridge keeps Megatron-LM."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeBase:
    """The user's checkout: where commits and code are read from, never written to.

    Attributes:
        root: Root of the checkout.
        mcore: The repository of Megatron-LM, the submodule's one in a Bridge checkout.
        mcore_head: Full SHA that it is checked out at.
        bridge: The repository of Bridge, or None in a Megatron-LM checkout.
        bridge_commit: Full SHA of its HEAD, the commit that Bridge stays at, or None.
    """

    root: Path
    mcore: "Repo"
    mcore_head: str
    bridge: "Repo | None" = None
    bridge_commit: str | None = None


@contextmanager
def open_codebase(path: Path, *, allow_dirty: bool = False) -> Iterator[CodeBase]:
    """The checkout that holds ``path``: Bridge with its submodule, or Megatron-LM.

    Args:
        path: Any folder of the checkout.
        allow_dirty: Go on although tracked files are changed. Runs use committed code only: those changes play no part.

    Raises:
        GitError: There is no such checkout, its submodule isn't there, or it has changed tracked files.
    """
    repo = open_repository(path)
    opened = [repo]
    try:
        root = Path(repo.working_tree_dir or repo.common_dir)
        head = _head(repo, root)
        if _kind_of(repo, SUBMODULE) == "commit" and _kind_of(repo, "src/megatron/bridge") == "tree":
            mcore = _open_submodule(root)
            opened.append(mcore)
            code = CodeBase(
                root=root, mcore=mcore, mcore_head=_head(mcore, root / SUBMODULE), bridge=repo, bridge_commit=head
            )
        elif _kind_of(repo, "megatron/core") == "tree":
            code = CodeBase(root=root, mcore=repo, mcore_head=head)
        else:
            raise GitError(
                f"{root}: neither a Megatron Bridge checkout (src/megatron/bridge and the submodule {SUBMODULE}) "
                "nor a Megatron-LM checkout (megatron/core). Give one of them as --repo."
            )
        if not allow_dirty:
            for each in opened:
                _refuse_changes(each)
        yield code
    finally:
        for each in opened:
            each.close()


def _head(repo: "Repo", root: Path) -> str:
    try:
        return ask(repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitError as error:
        raise GitError(f"{root}: the repository has no commit checked out yet.") from error


def _kind_of(repo: "Repo", path: str) -> str | None:
    """``tree``, ``blob`` or ``commit`` (a submodule): what HEAD holds at a path, whatever the working tree holds."""
    words = ask(repo, "ls-tree", "--full-tree", "HEAD", "--", path).split()
    return words[1] if len(words) > 1 else None


def _open_submodule(root: Path) -> "Repo":
    import git

    try:
        repo = git.Repo(root / SUBMODULE, search_parent_directories=False, expand_vars=False)
        _head(repo, root)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, GitError) as error:
        raise GitError(
            f"{root}: the submodule {SUBMODULE} is not initialised. "
            f"Run: git -C {quoted(root)} submodule update --init {SUBMODULE}"
        ) from error
    return repo


def _refuse_changes(repo: "Repo") -> None:
    if not repo.working_tree_dir:
        return
    entries = ask(repo, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all").split("\0")
    changed = [entry[3:] for entry in entries if len(entry) > 3]
    if changed:
        shown = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
        raise GitError(
            f"{where(repo)}: tracked files are changed ({shown}), and runs use committed code only. "
            "Commit or stash them, or go on without them: --allow-dirty."
        )
