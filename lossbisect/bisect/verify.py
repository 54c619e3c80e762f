"""The last questions about a commit that was found: what does the bad end do without it, and can it be at all."""

from collections.abc import Callable, Sequence

from lossbisect.bisect.case import Case
from lossbisect.bisect.culprit import Finding, Revert
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.known import run_of
from lossbisect.bisect.scope import Searched, StageKind
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitVerdict, Role
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome

__all__ = ["against_parent", "may_revert", "run_without"]

_STAGES = (StageKind.RANGE, StageKind.PINNED)


def may_revert(plan: BisectPlan) -> bool:
    """Whether the change that is found can be taken back on top of the bad end: it is one of Megatron-LM's line."""
    is_one_line = plan.scope.searched is Searched.MCORE and plan.stage.kind in _STAGES
    return plan.search.revert and not plan.search.find_all and is_one_line


def run_without(desk: Desk, finding: Finding, judge: Callable[[RunLog], CurveVerdict]) -> Revert | None:
    """Run the bad end with the culprit's change taken back: one run, once.

    Args:
        desk: Where it is run.
        finding: What was found.
        judge: What a curve says: good, bad, or neither.

    Returns:
        What came of it; None if the culprit is the bad end itself, which without it is its parent.
    """
    last = len(desk.commits.commits) - 1
    if finding.bad == last:
        return None
    job = Job(role=Role.REVERTED, index=last, without=desk.commits.at(finding.bad).sha)

    def agenda(going: Sequence[Job], _free: int) -> Agenda:
        return Agenda(start=[] if job in going or _step(desk) is not None else [job])

    desk.perform(agenda, lambda _job, log, *, is_cut: judge(log))  # noqa: ARG005  # it runs whole
    step = _step(desk)
    assert step is not None, f"{job} has not run"
    if step.verdict is CommitVerdict.SKIP:
        reason = step.record.reason if step.record.outcome is Outcome.VOID else step.reason
        return Revert(comes_back=None, reason=reason)
    return Revert(comes_back=step.verdict is CommitVerdict.GOOD, reason=step.reason)


def against_parent(desk: Desk, case: Case, finding: Finding) -> Callable[[RunLog], CurveVerdict]:
    """Judges the bad end without the culprit: good if it is as before the culprit, or as the good end."""
    before = run_of(desk.steps, finding.good)
    assert before is not None, "the last good commit has not run"

    def judge(log: RunLog) -> CurveVerdict:
        as_before = case.compare(desk.read(before), log)
        return as_before if as_before.verdict is CommitVerdict.GOOD else case.judge(log)

    return judge


def _step(desk: Desk) -> BisectStep | None:
    return next((step for step in desk.steps if step.role is Role.REVERTED), None)
