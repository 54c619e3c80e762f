"""The checkout's state: commits, changed files, what git is in the middle of. Pure."""

import shlex

from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.assist.gitfacts import Checkout, Tree
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.repository import quoted

__all__ = ["judge_checkout"]

_ABORT = {
    "merge": "merge --abort",
    "rebase": "rebase --abort",
    "cherry-pick": "cherry-pick --abort",
    "revert": "revert --abort",
    "bisect": "bisect reset",
}


def judge_checkout(checkout: Checkout, *, switched_to: str | None = None) -> tuple[Finding, ...]:
    """What is to be said about a checkout.

    Args:
        checkout: What git says.
        switched_to: Commit that ``lossbisect mcore`` last brought the submodule to.
    """
    found = list(_tree(checkout.tree))
    if checkout.kind == "bridge":
        found += [*_position(checkout, switched_to), *_pins(checkout)]
        if checkout.submodule is not None:
            found += _tree(checkout.submodule)
    return tuple(found)


def _finding(check: str, severity: Severity, where: object, what: str, remedy: str | None = None) -> Finding:
    return Finding(check=check, family=Family.CHECKOUT, severity=severity, where=str(where), what=what, remedy=remedy)


def _position(checkout: Checkout, switched_to: str | None) -> list[Finding]:
    """Where the submodule is, against where Bridge's commit wants it."""
    root, where = checkout.tree.root, checkout.tree.root / SUBMODULE
    update = f"git -C {quoted(root)} submodule update --init {SUBMODULE}"
    tree, pointer = checkout.submodule, checkout.pointer or ""
    if tree is None:
        what = "the submodule isn't initialised: there is no Megatron-Core in this checkout"
        return [_finding("submodule-missing", Severity.PROBLEM, where, what, update)]
    at = f"at {tree.head[:10]}"
    if tree.head == pointer:
        name = next((f" (its {name} pin)" for name, sha in checkout.pins.items() if sha == pointer), "")
        return [_finding("submodule", Severity.OK, where, f"{at}, where Bridge's commit wants it{name}")]
    wanted = f"Bridge's commit wants {pointer[:10]}"
    sync = f"lossbisect mcore sync --repo {quoted(root)}"
    if tree.head == switched_to:
        what = f"{at}, switched there by 'lossbisect mcore'; {wanted}"
        return [
            _finding(
                "submodule-switched", Severity.NOTE, where, what, f"lossbisect mcore restore --repo {quoted(root)}"
            )
        ]
    if tree.head == checkout.pins.get("dev"):
        what = f"{at}, the dev pin; {wanted}. uv.lock belongs to that one: run 'uv sync' without --locked"
        return [_finding("submodule-dev", Severity.NOTE, where, what, sync)]
    if checkout.behind:
        commits = "1 commit" if checkout.behind == 1 else f"{checkout.behind} commits"
        what = f"{at}, {commits} behind: {wanted}. Was Bridge updated and the submodule not?"
        return [_finding("submodule-behind", Severity.PROBLEM, where, what, sync)]
    what = f"{at}, neither the main nor the dev pin: {wanted}"
    return [_finding("submodule-elsewhere", Severity.WARNING, where, what, sync)]


def _pins(checkout: Checkout) -> list[Finding]:
    main, pointer = checkout.pins.get("main"), checkout.pointer or ""
    if main is None or main == pointer:
        return []
    file = checkout.tree.root / ".main.commit"
    what = f"names {main[:10]}, and the submodule's pointer {pointer[:10]}: 'use main' and a submodule update differ"
    return [_finding("pin-differs", Severity.NOTE, file, what)]


def _tree(tree: Tree) -> list[Finding]:
    root = quoted(tree.root)
    found: list[Finding] = []
    if tree.operation:
        command = f"git -C {root} {_ABORT[tree.operation]}"
        what = f"a {tree.operation} is under way, so the files belong to no single commit"
        found.append(_finding("operation", Severity.WARNING, tree.root, what, command))
    if tree.missing:
        what = f"the working tree lacks {', '.join(tree.missing)} (a sparse checkout?)"
        command = f"git -C {root} sparse-checkout disable && git -C {root} checkout HEAD -- {' '.join(tree.missing)}"
        found.append(_finding("missing-folders", Severity.PROBLEM, tree.root, what, command))
    elif tree.changed:
        what = f"tracked files are changed ({_some(tree.changed)}): what is trained here is no commit"
        found.append(_finding("changed-files", Severity.WARNING, tree.root, what, f"git -C {root} stash push"))
    if tree.untracked_code:
        what = f"Python files that git doesn't know ({_some(tree.untracked_code)}) are imported here and nowhere else"
        command = f"git -C {root} stash push --include-untracked -- {shlex.join(tree.untracked_code)}"
        found.append(_finding("untracked-code", Severity.WARNING, tree.root, what, command))
    if tree.is_shallow:
        what = "the clone is shallow: a bisect needs the commits that are missing"
        found.append(_finding("shallow", Severity.WARNING, tree.root, what, f"git -C {root} fetch --unshallow --tags"))
    if tree.is_partial:
        what = "the clone is partial: files of other commits are fetched when a run needs them, over the network"
        found.append(_finding("partial", Severity.NOTE, tree.root, what))
    if not found:
        on = f"on {tree.branch}" if tree.branch else "detached"
        found.append(_finding("tree", Severity.OK, tree.root, f"{on} at {tree.head[:10]}, no changed files"))
    return found


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
