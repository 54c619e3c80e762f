"""Back from the bad end to a commit with another curve or outcome, in steps that double."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lossbisect.bisect.case import Case
from lossbisect.bisect.desk import Agenda, Desk, Job, Judge
from lossbisect.bisect.ends import noise_of, why_not
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.judging import CurveVerdict, missing_iterations
from lossbisect.bisect.options import Regress
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.bisect.weighing import weigher_of
from lossbisect.compare.wording import counted
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog

__all__ = ["Walked", "next_back", "walk_back"]

_HOLES = 2
"""Commits that fail in a row before they are taken for the edge of what can be run here, rather than a hole in it."""
_MOST_FAILURES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked:
    """Where the walk ended.

    Attributes:
        good: Index of a commit whose curve isn't the bad end's, or of the oldest one if it and all that were run have
            the bad end's curve; -1 is the oldest.
        bad: Index of the oldest commit after it that is known to have the bad end's curve.
        reason: What was seen, one sentence.
    """

    good: int
    bad: int
    reason: str


def next_back(last: int, verdicts: Mapping[int, CommitVerdict]) -> int | None:
    """The commit to run next, or None if the walk is over. Pure.

    The distance from the bad end doubles with each commit. One that can't be run is passed over; after two in a row the
    walk turns round and halves what lies between them and the last commit that ran.

    Args:
        last: Index of the bad end, at least 0; the oldest commit is -1.
        verdicts: Bad for a commit with the bad end's curve, good for one with another, skip for one that says nothing.
    """
    same = min([last, *(i for i, verdict in verdicts.items() if verdict is CommitVerdict.BAD)])
    if any(i < same and verdict is CommitVerdict.GOOD for i, verdict in verdicts.items()) or same == -1:
        return None
    failed = sorted((i for i, verdict in verdicts.items() if verdict is CommitVerdict.SKIP and i < same), reverse=True)
    if len(failed) >= _MOST_FAILURES:
        return None
    if len(failed) < _HOLES and -1 not in failed:
        reached = failed[-1] if failed else same
        return max(-1, last - max(1, 2 * (last - reached)))
    middle = (same + failed[0]) // 2
    return middle if failed[0] < middle < same else None


def walk_back(desk: Desk) -> Walked:
    """Run the bad end twice, and then back from it until a curve isn't its own.

    Raises:
        EndpointError: The bad end can't be judged, or no commit before it can be run.
    """
    last = len(desk.commits.commits) - 1
    wanted = [Job(role=Role.BAD_END, index=last), Job(role=Role.BAD_AGAIN, index=last)]

    def ends(going: Sequence[Job], _free: int) -> Agenda:
        missing = [job for job in wanted if job not in going and desk.journal.find(job.role, job.index) is None]
        return Agenda(start=missing)

    desk.weigh = weigher_of(desk)

    def as_said(job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        assert not is_cut, f"{job}, {log.path}: ends run whole"
        return CurveVerdict(verdict=CommitVerdict.BAD, reason="as you said")

    def refuse(step: BisectStep) -> None:
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(desk, step))
        if step.verdict is not CommitVerdict.BAD:
            raise EndpointError(f"The bad end {desk.commits.bad.short} is none: {step.reason}. Name another --bad.")

    desk.perform(ends, as_said, refuse)
    judge = as_said if desk.weigh is not None else _judge(desk)

    def agenda(going: Sequence[Job], free: int) -> Agenda:
        verdicts = _verdicts(desk)
        nearest = max((i for i, verdict in verdicts.items() if verdict is CommitVerdict.GOOD), default=-2)
        # Free slots run what comes next if those that go on have the bad end's curve too.
        known = verdicts | dict.fromkeys((job.index for job in going), CommitVerdict.BAD)
        start: list[Job] = []
        while len(start) < free and (index := next_back(last, known)) is not None:
            start.append(Job(role=Role.WALK, index=index))
            known[index] = CommitVerdict.BAD
        return Agenda(start=start, drop=[job for job in going if job.index < nearest])

    def tell(step: BisectStep) -> None:
        what = {CommitVerdict.GOOD: "another {} than", CommitVerdict.BAD: "the same {} as"}.get(step.verdict)
        if what is not None:
            back, what = counted(last - step.index, "commit"), what.format(desk.terms.trait)
            desk.say(EventKind.NOTE, f"{desk.commits.at(step.index).short}, {back} back, has {what} the bad end.")

    desk.perform(agenda, judge, tell)
    return _walked(desk, last)


def _judge(desk: Desk) -> Judge:
    """Judges curves against the bad end's, which has run twice."""
    plan, last = desk.journal.plan, len(desk.commits.commits) - 1
    ends = (desk.journal.find(role, last) for role in (Role.BAD_END, Role.BAD_AGAIN))
    bad, again = (desk.read(step) for step in ends if step is not None)
    case = Case(
        metric=plan.metric, regress=plan.search.regress, noise=noise_of(desk, bad, again, which="bad"), good=bad,
        bad=bad, is_any_difference=True,
    )  # fmt: skip

    def judge(job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        assert not is_cut, f"{job}: a walk's runs are compared whole"
        return _judged(case, log)

    return judge


def _judged(case: Case, log: RunLog) -> CurveVerdict:
    """Bad for the bad end's curve, good for another one."""
    if gap := missing_iterations(case.bad, log, metric=case.metric):
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=gap)
    if case.regress is Regress.NAN:
        return case.judge(log)
    against = case.compare(case.bad, log)
    if against.verdict is CommitVerdict.SKIP:
        return against
    is_same = against.verdict is not CommitVerdict.BAD
    return CurveVerdict(
        verdict=CommitVerdict.BAD if is_same else CommitVerdict.GOOD, reason=f"against the bad end: {against.reason}"
    )


def _verdicts(desk: Desk) -> dict[int, CommitVerdict]:
    aside = dict.fromkeys(desk.commits.skipped, CommitVerdict.SKIP)
    found = {step.index: step.verdict for step in desk.steps if step.role is Role.WALK}
    # One that fails in another way than the bad end says nothing, as one that can't be run.
    return aside | {i: CommitVerdict.SKIP if v is CommitVerdict.OTHER else v for i, v in found.items()}


def _walked(desk: Desk, last: int) -> Walked:
    commits, verdicts = desk.commits, _verdicts(desk)
    same = min([last, *(i for i, verdict in verdicts.items() if verdict is CommitVerdict.BAD)])
    other = max((i for i, verdict in verdicts.items() if verdict is CommitVerdict.GOOD and i < same), default=None)
    ran = sum(step.role is Role.WALK for step in desk.steps)
    if other is not None:
        by_curve = "has another curve. Whether that is the right one is for you to say."
        step = next(step for step in desk.steps if step.role is Role.WALK and step.index == other)
        shown = by_curve if desk.weigh is None else f"is good: {step.reason}."
        reason = (
            f"No good end was named: {commits.at(other).short}, {counted(last - other, 'commit')} before the bad end "
            f"{commits.bad.short}, {shown}"
        )
        return Walked(good=other, bad=same, reason=reason)
    if same == -1:
        reason = f"{counted(ran, 'commit')} back to {commits.good.short} have the bad end's {desk.terms.trait}."
        return Walked(good=-1, bad=last, reason=reason)
    failed = max((step for step in desk.steps if step.role is Role.WALK and step.index < same), key=lambda it: it.index)
    far = commits.at(same).short
    raise EndpointError(
        f"No good end was found: back to {far} ({counted(last - same, 'commit')} before the bad end) the "
        f"{desk.terms.trait} is the bad end's, and what comes before can't be run here "
        f"({commits.at(failed.index).short}: {failed.reason}). Name a good commit that runs, --good COMMIT, or another "
        "recipe or trainer."
    )
