"""What git says about a checkout and its submodule. Only reads."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.repository import ask, is_ancestor, is_shallow, open_repository
from lossbisect.errors import GitError

if TYPE_CHECKING:
    from git import Repo

__all__ = ["PINS", "Checkout", "Kind", "Tree", "gather_checkout", "gather_tree", "kind_of", "read_pin"]

PINS = {"main": ".main.commit", "dev": ".dev.commit"}
"""Bridge's files that name its two commits of Megatron-LM."""

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}

type Kind = str
"""``bridge`` or ``megatron-lm``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """One working tree.

    Attributes:
        root: Its folder.
        head: Full SHA that is checked out.
        branch: The branch that is checked out, or None.
        changed: Tracked files that differ from ``head``, submodules left out.
        untracked_code: Python files under ``megatron`` that git neither tracks nor ignores.
        operation: ``merge``, ``rebase``, ``bisect`` and the like, if one is under way.
        is_shallow: Older commits are missing.
        is_partial: Files of older commits are fetched when they are first needed.
        missing: Folders that a training needs and that the working tree lacks, such as after a sparse checkout.
    """

    root: Path
    head: str
    branch: str | None
    changed: tuple[str, ...] = ()
    untracked_code: tuple[str, ...] = ()
    operation: str | None = None
    is_shallow: bool = False
    is_partial: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """A checkout of Bridge or Megatron-LM.

    Attributes:
        kind: Which of the two.
        tree: Its own working tree.
        submodule: The tree of Megatron-LM inside Bridge; None where it isn't initialised, or for Megatron-LM.
        pointer: Commit of Megatron-LM that Bridge's HEAD asks for.
        pins: The commits that ``.main.commit`` and ``.dev.commit`` name, by ``main`` and ``dev``.
        behind: Commits between the submodule's HEAD and a pointer that comes after it; None where it doesn't, or where
            that can't be seen.
    """

    kind: Kind
    tree: Tree
    submodule: Tree | None = None
    pointer: str | None = None
    pins: dict[str, str]
    behind: int | None = None

    @property
    def mcore(self) -> Tree | None:
        """The tree of Megatron-LM; None for a Bridge without its submodule."""
        return self.tree if self.kind == "megatron-lm" else self.submodule


def gather_checkout(path: Path) -> Checkout:
    """What git says about the checkout that holds ``path``; inside Bridge's submodule that is Megatron-LM.

    Raises:
        GitError: There is no checkout of Bridge or Megatron-LM.
    """
    repo = open_repository(path)
    try:
        root = Path(repo.working_tree_dir or repo.common_dir)
        kind = kind_of(repo, root)
        tree = gather_tree(repo, root, _NEEDED[kind])
        if kind == "megatron-lm":
            return Checkout(kind=kind, tree=tree, pins={})
        pins = {name: sha for name, file in PINS.items() if (sha := read_pin(root / file))}
        pointer = ask(repo, "ls-tree", "HEAD", "--", SUBMODULE).split()[2]
        submodule, behind = _submodule(root, pointer)
        return Checkout(kind=kind, tree=tree, submodule=submodule, pointer=pointer, pins=pins, behind=behind)
    finally:
        repo.close()


_NEEDED = {
    "bridge": ("src/megatron/bridge", "scripts/training"),
    "megatron-lm": ("megatron/core",),
}


def kind_of(repo: "Repo", root: Path) -> Kind:
    """What HEAD holds.

    Raises:
        GitError: Neither Bridge nor Megatron-LM, or nothing is committed yet.
    """
    try:
        if _has(repo, SUBMODULE, "commit") and _has(repo, "src/megatron/bridge", "tree"):
            return "bridge"
        if _has(repo, "megatron/core", "tree"):
            return "megatron-lm"
    except GitError as error:
        raise GitError(f"{root}: the repository has no commit checked out yet.") from error
    raise GitError(
        f"{root}: neither a Megatron Bridge checkout (src/megatron/bridge and the submodule {SUBMODULE}) nor a "
        "Megatron-LM checkout (megatron/core). Give the path of one of them."
    )


def gather_tree(repo: "Repo", root: Path, needed: tuple[str, ...] = ()) -> Tree:
    """What git says about one working tree."""
    status = ask(repo, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all")
    changed = _changed(status)
    others = ask(repo, "ls-files", "-z", "--others", "--exclude-standard", "--", "megatron", "src/megatron")
    config = ask(repo, "config", "--local", "--get-regexp", r"(\.promisor|\.partialclonefilter)$", allowed=(0, 1))
    git_dir = Path(repo.git_dir)
    branch = ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD", allowed=(0, 1))
    return Tree(
        root=root,
        head=ask(repo, "rev-parse", "HEAD"),
        branch=branch or None,
        changed=changed,
        untracked_code=tuple(name for name in others.split("\0") if name.endswith(".py")),
        operation=next((what for file, what in _OPERATIONS.items() if (git_dir / file).exists()), None),
        is_shallow=is_shallow(repo),
        is_partial=bool(config),
        missing=tuple(folder for folder in needed if not (root / folder).is_dir() and _has(repo, folder, "tree")),
    )


def _changed(status: str) -> tuple[str, ...]:
    """The paths of ``git status --porcelain -z``; of a renamed file the new name."""
    names: list[str] = []
    entries = iter(status.split("\0"))
    for entry in entries:
        if len(entry) > 3:
            names.append(entry[3:])
            if "R" in entry[:2] or "C" in entry[:2]:
                next(entries, None)
    return tuple(names)


def read_pin(file: Path) -> str | None:
    """The full SHA in ``.main.commit`` or ``.dev.commit``; None if there is no such file, or something else in it."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return text if _SHA.fullmatch(text) else None


def _submodule(root: Path, pointer: str) -> tuple[Tree | None, int | None]:
    import git

    try:
        repo = git.Repo(root / SUBMODULE, search_parent_directories=False, expand_vars=False)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        return None, None
    try:
        tree = gather_tree(repo, root / SUBMODULE, _NEEDED["megatron-lm"])
        return tree, _behind(repo, tree.head, pointer)
    except GitError:  # cloned, but nothing is checked out
        return None, None
    finally:
        repo.close()


def _behind(repo: "Repo", head: str, pointer: str) -> int | None:
    if head == pointer:
        return 0
    try:
        if not is_ancestor(repo, head, pointer):
            return None
        return int(ask(repo, "rev-list", "--count", f"{head}..{pointer}"))
    except GitError:  # the pointer's commit isn't here
        return None


def _has(repo: "Repo", path: str, kind: str) -> bool:
    words = ask(repo, "ls-tree", "--full-tree", "HEAD", "--", path).split()
    return words[1:2] == [kind]
