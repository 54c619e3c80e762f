"""The stages after the search: into what was left out, into a merge, into the pin that a commit of Bridge moved."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.bisect.approach import turned_round, verdict_between
from lossbisect.bisect.axes import Axis, Carried, Mix, carried_by, next_mix
from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.bisect.commits import commit_info, merge_base
from lossbisect.bisect.culprit import Answer, BisectResult, Culprit
from lossbisect.bisect.harmless import harmless_files
from lossbisect.bisect.names import pin_of, searched_repo
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.outset import stage_between
from lossbisect.bisect.pairs import mix_of
from lossbisect.bisect.repository import is_ancestor
from lossbisect.bisect.same_change import is_same_change
from lossbisect.bisect.scope import Scope, Searched, Stage, StageKind
from lossbisect.bisect.terms import terms_of
from lossbisect.bisect.types import BisectPlan, CommitInfo, CommitVerdict, FileChange
from lossbisect.errors import EndpointError, GitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lossbisect.bisect.chain import Chain

__all__ = ["deeper"]

_PIN_FILES = (SUBMODULE, ".main.commit", ".dev.commit", "uv.lock")
"""What a commit of Bridge that only moves its pin changes; packages are those of the interpreter in use."""


def deeper(chain: "Chain", result: BisectResult) -> BisectResult:
    """The last word on a commit that was found: the answer itself, or what a look inside it says."""
    if result.answer is not Answer.FOUND or result.culprit is None:
        return result
    checked = _left_out(chain, result)
    if checked.culprit is None or checked.culprit.commit != result.culprit.commit:
        return checked
    if checked.plan.scope.all_parents and checked.culprit.commit.is_merge:
        inner = _merged(chain, checked, checked.culprit.commit)
        if inner is not None:
            return deeper(chain, inner)
    if checked.plan.scope.searched is Searched.BRIDGE:
        return _pinned(chain, checked, checked.culprit)
    return checked


def _left_out(chain: "Chain", result: BisectResult) -> BisectResult:
    """Run the commit right before the culprit, if it was left out: that it changes nothing was only assumed."""
    culprit, plan = result.culprit, result.plan
    if culprit is None or not plan.scope.paths or culprit.commit.parents[:1] == (culprit.parent.sha,):
        return result
    repo = searched_repo(chain.code, plan.scope.searched)
    words = terms_of(plan.search)
    before = commit_info(repo, culprit.commit.parents[0])
    gap = replace(
        plan,
        good=culprit.parent.sha,
        bad=culprit.commit.sha,
        stage=Stage(kind=StageKind.GAP, points=(before.sha,)),
        scope=replace(plan.scope, paths=()),
        search=_one_change(plan),
    )
    untold = f"Whether the commits left out before {culprit.commit.short} change nothing can't be told: "
    try:
        checked = chain.search(gap)
    except (EndpointError, GitError) as error:
        chain.note(StageKind.GAP, chain.stage_id, untold + _line(error))
        return result
    if checked.answer is not Answer.FOUND:
        chain.note(StageKind.GAP, checked.id, untold + checked.finding.reason)
        return result
    if checked.finding.bad > 0:
        text = (
            f"The commit right before {culprit.commit.short}, {before.short}, has run too and is {words.old}: the "
            "answer rests on no assumption about the commits left out."
        )
        chain.note(StageKind.GAP, checked.id, text, before)
        return replace(result, culprit=replace(culprit, parent=before))
    text = (
        f"The commit right before {culprit.commit.short}, {before.short}, is {words.new} already: one that doesn't "
        f"touch {' '.join(plan.scope.paths)} makes the change."
    )
    chain.note(StageKind.GAP, checked.id, text, before)
    whole = replace(plan, good=culprit.parent.sha, bad=before.sha, stage=Stage(), scope=replace(plan.scope, paths=()))
    return chain.bisect(whole)


def _merged(chain: "Chain", result: BisectResult, merge: CommitInfo) -> BisectResult | None:
    """The answer among the commits that a merge brought in; None if they don't show the change by themselves."""
    repo = searched_repo(chain.code, result.plan.scope.searched)
    first, *others = merge.parents
    what = terms_of(result.plan.search).trait
    for other in others:
        base = merge_base(repo, first, other)
        if base is None or base == other:
            continue
        chain.say(f"{merge.short} is a merge: now the commits that it brought in, {base[:10]}..{other[:10]}.")
        plan = replace(
            result.plan,
            good=base,
            bad=other,
            stage=Stage(kind=StageKind.MERGED),
            scope=replace(result.plan.scope, paths=()),
            search=_one_change(result.plan),
        )
        together = f"the change comes only in the combination with its first parent {first[:10]}"
        try:
            inner = chain.search(plan)
        except (EndpointError, GitError) as error:
            text = f"The commits that the merge {merge.short} brought in can't be tested alone: {_line(error)}"
            chain.note(StageKind.MERGED, chain.stage_id, text, merge)
            continue
        if inner.answer is Answer.NO_CULPRIT:
            text = f"What {merge.short} merged, {other[:10]}, has the {what} of the merge base {base[:10]}: {together}."
        elif inner.answer is not Answer.FOUND or inner.culprit is None:
            text = f"Among the commits that {merge.short} merged: {inner.finding.reason}"
        elif not is_same_change(chain, result, inner):
            text = (
                f"Among the commits that {merge.short} merged {inner.culprit.commit.short} changes the {what}, but not "
                f"as the merge does: {together}."
            )
        else:
            count = len(inner.commits.commits)
            among = "the commit" if count == 1 else f"one of the {count} commits"
            text = (
                f"{merge.short} is the {terms_of(plan.search).first} of the first-parent line, a merge "
                f"({merge.subject}). "
                f"{inner.culprit.commit.short}, {among} that it brought in, makes the change by itself."
                f"{_reverted(result)}"
            )
            chain.note(StageKind.MERGED, inner.id, text, merge)
            return inner
        chain.note(StageKind.MERGED, inner.id, text, merge)
    return None


def _reverted(result: BisectResult) -> str:
    """What the bad end does without the commit that was found, as a sentence after a blank; empty if it wasn't run."""
    revert = result.finding.revert
    if revert is None or revert.comes_back is None:
        return ""
    yes = "yes" if revert.comes_back else "no"
    return f" Reverted on top of {result.commits.bad.short}, {terms_of(result.plan.search).back}: {yes}."


def _pinned(chain: "Chain", result: BisectResult, culprit: Culprit) -> BisectResult:
    """Whether a commit of Bridge, the pin that it moves, or both make the change; and then into the pin's range."""
    assert chain.code.bridge is not None, "only Bridge has pins"
    commit = culprit.commit
    old, new = (pin_of(chain.code.bridge, each.sha) for each in (culprit.parent, commit))
    if old is None or new is None or old == new:
        chain.note(StageKind.RANGE, result.id, f"{commit.short} leaves the pin as it is: Bridge's own change.", commit)
        return result
    if _moves_only_the_pin(culprit.files):
        text = f"{commit.short} only moves Bridge's pin of Megatron-LM, from {old[:10]} to {new[:10]}."
        chain.note(StageKind.RANGE, result.id, text, commit)
        return _inside_pin(chain, result, old, new, bridge=commit.sha)
    pair = replace(
        result.plan,
        good=culprit.parent.sha,
        bad=commit.sha,
        scope=replace(result.plan.scope, paths=()),
        search=_one_change(result.plan),
    )
    both = f"{commit.short} changes Bridge and moves its pin of Megatron-LM, from {old[:10]} to {new[:10]}"
    try:
        carried, new_bridge = _told_apart(chain, pair, old, new)
    except (EndpointError, GitError) as error:
        chain.note(StageKind.PAIR, chain.stage_id, f"{both}. The two can't be told apart: {_line(error)}", commit)
        return result
    is_mcore = carried.axes == (Axis.MCORE,) and carried.is_alone
    is_bridge = carried.axes == (Axis.BRIDGE,) and carried.is_alone
    owner = "Megatron-Core's change: " if is_mcore else "Bridge's own change: " if is_bridge else ""
    chain.note(StageKind.PAIR, chain.stage_id, f"{both}. {owner}{carried.reason}.", commit)
    if is_bridge:
        return result
    if is_mcore:
        return _inside_pin(chain, result, old, new, bridge=culprit.parent.sha)
    # With the new Bridge the old Megatron-LM isn't bad, and the new one is: there is a commit in between.
    is_open = new_bridge in (CommitVerdict.GOOD, CommitVerdict.OTHER)
    return _inside_pin(chain, result, old, new, bridge=commit.sha) if is_open else result


def _told_apart(chain: "Chain", pair: BisectPlan, old: str, new: str) -> tuple[Carried, CommitVerdict | None]:
    """Ask of mixes of the old and the new side which end they are like, until it is clear which makes the change.

    Args:
        chain: Where they are run.
        pair: Between the two commits of Bridge.
        old: Full SHA of the Megatron-LM that the older one pins.
        new: Of the newer one.

    Returns:
        Which side it is, and the verdict on the new Bridge with the old Megatron-LM, None if that wasn't asked.
    """
    axes = [Axis.MCORE, Axis.BRIDGE]
    bridge_alone = frozenset([Axis.BRIDGE])
    names = {frozenset([Axis.MCORE]): mix_of(pair.good, new), bridge_alone: mix_of(pair.bad, old)}
    known: dict[Mix, CommitVerdict] = {}
    while (mix := next_mix(axes, known)) is not None:
        stage = Stage(kind=StageKind.PAIR, points=(names[mix],))
        known[mix] = verdict_between(chain.search(replace(pair, stage=stage)))
    return carried_by(axes, known), known.get(bridge_alone)


def _inside_pin(chain: "Chain", result: BisectResult, old: str, new: str, *, bridge: str) -> BisectResult:
    """The search between two pins with Bridge held at a commit; Bridge's own result where that comes to nothing."""
    mcore = chain.code.mcore
    plan = replace(
        result.plan,
        good=old,
        bad=new,
        bridge_commit=bridge,
        scope=Scope(all_parents=result.plan.scope.all_parents),
        stage=Stage(kind=StageKind.PINNED),
    )
    try:
        if is_ancestor(mcore, new, old):
            chain.say(f"The pin moves back: the search goes from {new[:10]} to {old[:10]}, for what {new[:10]} lacks.")
            plan = turned_round(plan, new, old)
        elif (stage := stage_between(mcore, old, new)).kind is StageKind.SIDES:
            plan = replace(plan, stage=stage)
        inner = chain.bisect(plan)
    except (EndpointError, GitError) as error:
        text = f"Inside the pin's range, with Bridge at {bridge[:10]}, nothing can be searched: {_line(error)}"
        chain.note(StageKind.PINNED, chain.stage_id, text)
        return result
    text = f"Inside the pin's range, with Bridge held at {bridge[:10]}: {inner.finding.reason}"
    chain.note(StageKind.PINNED, inner.id, text, inner.culprit.commit if inner.culprit else None)
    return result if inner.answer in (Answer.NO_CULPRIT, Answer.UNDECIDED) else inner


def _moves_only_the_pin(files: "Sequence[FileChange]") -> bool:
    return harmless_files(file for file in files if file.path not in _PIN_FILES)


def _one_change(plan: BisectPlan) -> SearchOptions:
    """What is looked for where a stage has one question, whatever the whole bisect is to list."""
    return replace(plan.search, find_all=False, probe=0)


def _line(error: Exception) -> str:
    return str(error).splitlines()[0]
