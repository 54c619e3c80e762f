"""The stages before the search: from a lone bad end, or ends on two branches, to two ends of one line."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.bisect.commits import commit_info
from lossbisect.bisect.culprit import Answer, BisectResult
from lossbisect.bisect.names import searched_repo
from lossbisect.bisect.scope import Stage, StageKind
from lossbisect.bisect.terms import terms_of
from lossbisect.bisect.types import BisectPlan, CommitVerdict, Role
from lossbisect.bisect.walk import walk_back
from lossbisect.bisect.weighing import BY_SIGN
from lossbisect.errors import EndpointError

if TYPE_CHECKING:
    from lossbisect.bisect.chain import Chain
    from lossbisect.bisect.desk import Desk
    from lossbisect.bisect.events import Runner
    from lossbisect.bisect.state import Journal

__all__ = ["ends_of", "turned_round", "verdict_between"]

_POINT, _END = 0, 1
"""Indices of the only commit in between and of the newer end, in a stage that asks which end that commit is like."""


def ends_of(chain: "Chain", plan: BisectPlan) -> BisectPlan | BisectResult:
    """The plan with two ends of one line; or the answer, where it needs no search.

    Raises:
        EndpointError: There is no good end, or an end or the merge base can't be judged.
    """
    match plan.stage.kind:
        case StageKind.WALK:
            return _walked(chain, plan)
        case StageKind.SIDES:
            return _side(chain, plan)
        case _:
            return plan


def turned_round(plan: BisectPlan, older: str, newer: str) -> BisectPlan:
    """The plan that looks for the commit by which the bad curve, now the older commit's, became the newer one's."""
    search = replace(plan.search, find_fix=not plan.search.find_fix)
    return replace(plan, good=older, bad=newer, stage=Stage(), search=search)


def _walked(chain: "Chain", plan: BisectPlan) -> BisectPlan:
    def walk(desk: "Desk", journal: "Journal", _runner: "Runner") -> tuple[str, str]:
        walked = walk_back(desk)
        chain.note(StageKind.WALK, journal.id, walked.reason)
        return desk.commits.at(walked.good).sha, desk.commits.at(walked.bad).sha

    good, bad = chain.stage(plan, walk)
    return replace(plan, good=good, bad=bad, stage=Stage())


def _side(chain: "Chain", plan: BisectPlan) -> BisectPlan | BisectResult:
    """Run the merge base beside both ends: the side whose end differs from it holds the change."""
    result = chain.search(replace(plan, search=replace(plan.search, find_all=False, probe=0)))
    if result.answer in (Answer.NO_CULPRIT, Answer.UNDECIDED):
        return result
    repo = searched_repo(chain.code, plan.scope.searched)
    old, base, new = (commit_info(repo, sha) for sha in (plan.good, *plan.stage.points, plan.bad))
    words = terms_of(plan.search)
    start = f"Neither end comes before the other; their merge base is {base.short}."
    verdict = verdict_between(result)
    what = words.trait
    if verdict is CommitVerdict.GOOD:
        text = f"It has the {words.old} end's {what}: the change lies on the {words.new} end's side."
        plan = replace(plan, good=base.sha, stage=Stage())
    elif verdict is CommitVerdict.BAD:
        text = (
            f"It has the {words.new} end's {what}: the change lies on the {words.old} end's side, and the {words.new} "
            f"end {new.short} lacks it. So the search goes from {base.short} to {old.short}, for the commit that "
            f"brought the {words.old} end's {what}."
        )
        plan = turned_round(plan, base.sha, old.sha)
    elif verdict is CommitVerdict.OTHER:
        text = (
            f"It has neither end's {what}: both sides have changed it. The search goes on the {words.new} end's side; "
            f"for the other one search {base.short}..{old.short}."
        )
        plan = replace(plan, good=base.sha, stage=Stage())
    else:
        raise EndpointError(
            f"{start} It can't be judged: {result.finding.reason} Choose ends of which one comes before the other."
        )
    chain.note(StageKind.SIDES, result.id, f"{start} {text}", base)
    return plan


def verdict_between(result: BisectResult) -> CommitVerdict:
    """Which end the only commit in between is like, by the answer of its stage; skip where that can't be told."""
    steps = [step for step in result.finding.steps if step.role is Role.SEARCH and step.index == _POINT]
    told = {step.verdict for step in steps} - {CommitVerdict.SKIP}
    # One that fails in another way never came so far as to show what is looked for.
    if told == {CommitVerdict.OTHER} and result.plan.search.regress not in BY_SIGN:
        return CommitVerdict.OTHER
    if result.answer is not Answer.FOUND:
        return CommitVerdict.SKIP
    return CommitVerdict.GOOD if result.finding.bad == _END else CommitVerdict.BAD
