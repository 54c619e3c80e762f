"""The submodule's state and a switch of it, as text."""

from lossbisect.assist.gitfacts import PINS
from lossbisect.assist.mcore import Position, SwitchPlan
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.repository import quoted

__all__ = ["done_text", "plan_text", "status_text"]


def status_text(here: Position) -> str:
    """Several lines without a final newline."""
    checkout, tree = here.checkout, here.tree
    on = f"on branch {tree.branch}" if tree.branch else "detached"
    changed = f"{len(tree.changed)} changed files" if tree.changed else "no changed files"
    rows = [
        ("checked out", here.name(tree.head), f"{on}, {changed}"),
        ("Bridge wants", here.name(checkout.pointer or "").removesuffix(" (what Bridge wants)"), _distance(here)),
    ]
    for pin, file in PINS.items():
        sha = checkout.pins.get(pin)
        here_or_not = "" if pin in here.present else f"not in this clone: 'use {pin}' fetches it"
        rows.append((f"{pin} pin", sha[:10] if sha else "none", here_or_not if sha else f"no {file} at this commit"))
    lines = [f"{tree.root}", *(f"  {name:<13} {sha:<30} {more}".rstrip() for name, sha, more in rows)]
    if here.moves:
        last = here.moves[-1]
        lines.append(f"  switched      from {here.name(last.before)} on {last.at[:10]}; back with: {_restore(here)}")
    return "\n".join(lines)


def plan_text(plan: SwitchPlan) -> str:
    """What will happen, several lines without a final newline."""
    here = plan.position
    where = here.checkout.tree.root / SUBMODULE
    if plan.is_done:
        return f"{where} is at {here.name(here.tree.head)} already: nothing to do."
    target = here.name(plan.target) if plan.target else plan.name
    lines = [f"{where}: {here.name(here.tree.head)} -> {target}"]
    if plan.remark:
        lines.append(f"  note: {plan.remark}")
    if plan.fetch:
        why = "" if plan.target is None else ", since it isn't in this clone"
        lines.append(f"  fetch {plan.fetch} from its remote{why}")
    if plan.newer is not None and plan.older is not None:
        lines.append(f"  adds {_commits(plan.newer)} and leaves out {plan.older}")
    lines.append(f"  check out {plan.branch or 'the commit, without a branch'}; no file of yours is touched")
    return "\n".join(lines)


def done_text(plan: SwitchPlan) -> str:
    """What to do after a switch, several lines without a final newline."""
    here = plan.position
    lines = [] if plan.is_done else [f"{SUBMODULE} is at {here.name(plan.target or '')}."]
    if plan.sync:
        lines.append(f"Bring the environment along: cd {quoted(here.checkout.tree.root)} && {plan.sync}")
        if "--locked" not in plan.sync:
            undo = f"git -C {quoted(here.checkout.tree.root)} restore uv.lock"
            lines.append(f"That changes uv.lock, which belongs to Bridge's own commit; undo it later with: {undo}")
    if not plan.is_undo and not plan.is_done:
        lines.append(f"Go back with: {_restore(here)}")
    return "\n".join(lines)


def _distance(here: Position) -> str:
    behind = here.checkout.behind
    if behind is None:
        return "on another line of history than what is checked out"
    return f"{_commits(behind)} after what is checked out" if behind else ""


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def _restore(here: Position) -> str:
    return f"lossbisect mcore restore --repo {quoted(here.checkout.tree.root)}"
