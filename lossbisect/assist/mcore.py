"""Bridge's submodule of Megatron-LM, switched to another commit and back without losing anything.

Nothing is stashed, overwritten or forced: a tree with changed files, or with files that git doesn't know where the
other commit has its own, is refused. What was checked out before is on record, and kept alive by a ref where nothing
else would.
"""

import re
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.assist.gitfacts import Checkout, Tree, gather_checkout
from lossbisect.assist.gitwrite import git_write
from lossbisect.assist.switch_record import Move, read_moves, write_moves
from lossbisect.bisect.codebase import SUBMODULE, open_codebase
from lossbisect.bisect.names import resolve
from lossbisect.bisect.repository import ask, open_repository, quoted
from lossbisect.errors import GitError, StateError

if TYPE_CHECKING:
    from git import Repo

__all__ = [
    "Position",
    "SwitchPlan",
    "in_the_way",
    "plan_restore",
    "plan_switch",
    "plan_sync",
    "position",
    "switch",
    "sync_command",
]

_SHA = re.compile(r"[0-9a-f]{40}")
_PULL = re.compile(r"(?:pull|pr)/(\d{1,7})(?:/head)?")
_SAID = re.compile(r"switch_mcore\.sh (main|dev)\b[^\n]*?\b(uv sync(?: --[\w-]+)*)")
_SYNC = {"main": "uv sync --locked", "dev": "uv sync"}
"""What Bridge's README says since the two pins exist; uv.lock belongs to main."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Where the submodule is.

    Attributes:
        checkout: Bridge, with its submodule.
        tree: The submodule.
        moves: Switches of lossbisect that can be undone, oldest first.
        present: Which of the pins are in this clone.
        git_dir: The submodule's git directory.
    """

    checkout: Checkout
    tree: Tree
    moves: tuple[Move, ...]
    present: frozenset[str]
    git_dir: Path

    def name(self, sha: str) -> str:
        """A commit as a person knows it: its short SHA, and which pin it is."""
        names = [f"the {pin} pin" for pin, pinned in self.checkout.pins.items() if pinned == sha]
        if sha == self.checkout.pointer and not names:
            names = ["what Bridge wants"]
        return f"{sha[:10]} ({names[0]})" if names else sha[:10]


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchPlan:
    """What a switch will do.

    Attributes:
        position: Where the submodule is now.
        name: What the user called the target.
        target: Full SHA of the target; None while it has to be fetched by a name.
        fetch: What to fetch from the remote first, or None.
        branch: Branch to check out instead of a bare commit, on the way back.
        newer: Commits that come in; None where that can't be told.
        older: Commits that go.
        sync: The ``uv sync`` that is right after it; None where Bridge has no ``uv.lock``.
        is_undo: It takes the last move back, instead of making a new one.
        remark: Something the user should know, or empty.
    """

    position: Position
    name: str
    target: str | None
    fetch: str | None = None
    branch: str | None = None
    newer: int | None = None
    older: int | None = None
    sync: str | None = None
    is_undo: bool = False
    remark: str = ""

    @property
    def is_done(self) -> bool:
        """The target is checked out already."""
        return self.target == self.position.tree.head and self.branch == (
            self.position.tree.branch if self.branch else None
        )


def position(path: Path) -> Position:
    """Where the submodule of the Bridge checkout that holds ``path`` is.

    Raises:
        GitError: There is no Bridge checkout, or its submodule isn't initialised.
        StateError: The record of earlier switches can't be read.
    """
    checkout = gather_checkout(_outermost(path))
    if checkout.kind != "bridge":
        raise GitError(
            f"{checkout.tree.root}: a Megatron-LM checkout, which has no submodule to switch. Use git, or give a "
            "Megatron Bridge checkout: --repo PATH"
        )
    root, tree = checkout.tree.root, checkout.submodule
    if tree is None:
        raise GitError(
            f"{root}: the submodule {SUBMODULE} is not initialised. "
            f"Run: git -C {quoted(root)} submodule update --init {SUBMODULE}"
        )
    with closing(open_repository(tree.root)) as repo:
        git_dir = Path(repo.git_dir)
        present = frozenset(name for name, sha in checkout.pins.items() if _is_here(repo, sha))
    return Position(checkout=checkout, tree=tree, moves=read_moves(git_dir), present=present, git_dir=git_dir)


def plan_switch(path: Path, name: str) -> SwitchPlan:
    """What it takes to go to a commit.

    Args:
        path: A folder of the Bridge checkout.
        name: ``main`` or ``dev`` for Bridge's pins, ``pull/N`` for the newest commit of a pull request, or a commit of
            Megatron-LM: SHA, tag, branch, release, ``bridge:REV``.

    Raises:
        GitError: There is no such commit, or the submodule can't be left as it is.
    """
    here = position(path)
    if pull := _PULL.fullmatch(name):
        return _planned(here, name, None, fetch=f"pull/{pull[1]}/head")
    if name in ("main", "dev"):
        target = here.checkout.pins.get(name) or (here.checkout.pointer if name == "main" else None)
        if target is None:
            raise GitError(
                f"{here.checkout.tree.root}: this commit of Bridge has no .{name}.commit. Name a commit of Megatron-LM."
            )
    elif _SHA.fullmatch(name):
        target = name
    else:
        with open_codebase(here.checkout.tree.root, allow_dirty=True) as code:
            target = resolve(code, name)
    return _planned(here, name, target)


def plan_sync(path: Path) -> SwitchPlan:
    """What it takes to go to the commit that Bridge's HEAD wants.

    Raises:
        GitError: The submodule can't be left as it is.
    """
    here = position(path)
    return _planned(here, "sync", here.checkout.pointer)


def plan_restore(path: Path) -> SwitchPlan:
    """What it takes to take the last switch back.

    Raises:
        StateError: There was none.
        GitError: The submodule can't be left as it is.
    """
    here = position(path)
    if not here.moves:
        raise StateError(
            f"{here.tree.root}: 'lossbisect mcore' has switched nothing, so there is nothing to restore. Use "
            "'lossbisect mcore sync' for the commit that Bridge wants."
        )
    last, remark, branch = here.moves[-1], "", None
    if here.tree.head not in (last.after, last.before):
        remark = f"the submodule was moved to {here.tree.head[:10]} after lossbisect had switched it"
    if last.branch is not None:
        with closing(open_repository(here.tree.root)) as repo:
            tip = ask(repo, "rev-parse", "--verify", "--quiet", f"refs/heads/{last.branch}", allowed=(0, 1))
        branch = last.branch if tip == last.before else None
        if branch is None:
            remark = f"the branch {last.branch} has moved since, so its old commit is checked out without it"
    return replace(_planned(here, "restore", last.before), branch=branch, is_undo=True, remark=remark)


def switch(plan: SwitchPlan) -> SwitchPlan:
    """Do what a plan says; return it with what became known on the way.

    Raises:
        GitError: The commit can't be fetched, or the submodule can't be left as it is. Nothing is switched then.
    """
    here, folder = plan.position, plan.position.tree.root
    target = plan.target
    if plan.fetch is not None:
        remote = _remote(folder)
        git_write(folder, "fetch", "--no-tags", "--no-recurse-submodules", remote, plan.fetch)
        with closing(open_repository(folder)) as repo:
            fetched = ask(repo, "rev-parse", "--verify", "FETCH_HEAD^{commit}")
        target = target or fetched
        plan = replace(_planned(here, plan.name, target), branch=plan.branch, is_undo=plan.is_undo, remark=plan.remark)
    assert target is not None
    if plan.is_done:
        _forget_last(plan)
        return plan
    if not plan.is_undo:
        _remember(plan, target)
    elif here.tree.head != here.moves[-1].after:  # commits of the user's, made after the switch
        _keep(here.tree)
    failure = _check_out(folder, plan.branch, target)
    with closing(open_repository(folder)) as repo:
        reached = ask(repo, "rev-parse", "HEAD")
    if reached != target:  # a hook that fails after the checkout is no failure of it
        if not plan.is_undo:
            write_moves(here.git_dir, here.moves)
        raise failure or GitError(f"{folder}: at {reached[:10]} after the checkout, not at {target[:10]}.")
    _forget_last(plan)
    return plan


def _check_out(folder: Path, branch: str | None, target: str) -> GitError | None:
    try:
        git_write(
            folder,
            *("-c", "advice.detachedHead=false"),
            *("checkout", "--quiet", "--no-overwrite-ignore", "--no-recurse-submodules"),
            *([branch] if branch else ["--detach", target]),
        )
    except GitError as error:
        return error
    return None


def sync_command(readme: str, *, is_locked: bool) -> str:
    """The ``uv sync`` after a switch, as the checkout's own README says it.

    Args:
        readme: Text of Bridge's README.
        is_locked: The commit is the one that ``uv.lock`` belongs to.
    """
    said = _SYNC | dict(_SAID.findall(readme))
    return said["main" if is_locked else "dev"]


def in_the_way(others: list[str], files: list[str]) -> list[str]:
    """Files that git doesn't know, or ignores, and that a checkout would overwrite.

    Args:
        others: Their paths.
        files: Paths of the commit that is to be checked out.
    """
    ours = set(files)
    folders = {parent for file in files for parent in _parents(file)}
    return [name for name in others if name in ours or name in folders or any(p in ours for p in _parents(name))]


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _planned(here: Position, name: str, target: str | None, fetch: str | None = None) -> SwitchPlan:
    """A plan, after every reason to refuse it."""
    tree = here.tree
    if tree.operation:
        raise GitError(f"{tree.root}: a {tree.operation} is under way. Finish it or give it up first.")
    if tree.changed and target != tree.head:
        raise GitError(
            f"{tree.root}: tracked files are changed ({_some(tree.changed)}), and nothing of yours is overwritten or "
            "stashed here. Commit them, or put them away yourself: "
            f"git -C {quoted(tree.root)} stash push"
        )
    newer = older = None
    if target is not None:
        with closing(open_repository(tree.root)) as repo:
            if not _is_here(repo, target):
                fetch = target
            else:
                _refuse_overwriting(repo, tree, target)
                counts = ask(repo, "rev-list", "--left-right", "--count", f"{tree.head}...{target}").split()
                older, newer = int(counts[0]), int(counts[1])
    return SwitchPlan(
        position=here,
        name=name,
        target=target,
        fetch=fetch,
        newer=newer,
        older=older,
        sync=_sync(here, target),
    )


def _sync(here: Position, target: str | None) -> str | None:
    root = here.checkout.tree.root
    if not (root / "uv.lock").is_file():
        return None
    readme = ""
    with suppress(OSError):
        readme = (root / "README.md").read_text(encoding="utf-8", errors="replace")
    return sync_command(readme, is_locked=target in (here.checkout.pointer, here.checkout.pins.get("main")))


def _refuse_overwriting(repo: "Repo", tree: Tree, target: str) -> None:
    others = [name for name in ask(repo, "ls-files", "-z", "--others").split("\0") if name]
    files = ask(repo, "ls-tree", "-r", "-z", "--name-only", "--full-tree", target).split("\0") if others else []
    blocked = in_the_way(others, [name for name in files if name])
    if blocked:
        raise GitError(
            f"{tree.root}: {_some(blocked)} would be overwritten, and git doesn't have it. Move it away first."
        )


def _remember(plan: SwitchPlan, target: str) -> None:
    here = plan.position
    move = Move(
        at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        before=here.tree.head,
        branch=here.tree.branch,
        after=target,
        name=plan.name,
        kept=_keep(here.tree),
    )
    write_moves(here.git_dir, (*here.moves, move))


def _keep(tree: Tree) -> str | None:
    """A ref that keeps alive what is checked out; None where a branch or tag does."""
    with closing(open_repository(tree.root)) as repo:
        if not ask(repo, "rev-list", "--max-count=1", tree.head, "--not", "--branches", "--tags", "--remotes"):
            return None
    ref = f"refs/lossbisect/kept/{tree.head[:16]}"
    git_write(tree.root, "update-ref", ref, tree.head)
    return ref


def _forget_last(plan: SwitchPlan) -> None:
    """After a way back: the move is undone, and HEAD itself keeps alive what the ref did."""
    here = plan.position
    if not plan.is_undo:
        return
    last, others = here.moves[-1], here.moves[:-1]
    write_moves(here.git_dir, others)
    if last.kept is not None and last.kept not in {move.kept for move in others}:
        git_write(here.tree.root, "update-ref", "-d", last.kept)


def _is_here(repo: "Repo", sha: str) -> bool:
    try:
        return ask(repo, "cat-file", "-t", sha) == "commit"
    except GitError:
        return False


def _remote(folder: Path) -> str:
    with closing(open_repository(folder)) as repo:
        remotes = ask(repo, "remote").split()
    if not remotes:
        raise GitError(
            f"{folder}: it has no remote to fetch from. Add one: git -C {quoted(folder)} remote add origin URL"
        )
    return "origin" if "origin" in remotes else remotes[0]


def _outermost(path: Path) -> Path:
    """The Bridge checkout around a submodule that a user stands in."""
    full = path.resolve()
    parts = Path(SUBMODULE).parts
    for folder in (full, *full.parents):
        if folder.parts[-len(parts) :] == parts and (folder.parents[len(parts) - 1] / ".gitmodules").is_file():
            return folder.parents[len(parts) - 1]
    return path


def _some(names: "list[str] | tuple[str, ...]") -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
