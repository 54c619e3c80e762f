"""The search where runs don't repeat themselves: commits are run again and again until one is likely enough."""

from collections.abc import Callable, Sequence

from lossbisect.bisect.case import Case
from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.ends import why_not
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.exact import finding_of
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.known import places_left
from lossbisect.bisect.noisy import Outlook, contradict, look_ahead
from lossbisect.bisect.posterior import Evidence, Reading
from lossbisect.bisect.scale import Score, scores
from lossbisect.bisect.telling import outlook_text
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome

__all__ = ["NoisyHunt"]

_HALF = 0.5


class NoisyHunt:
    """One search, from the ends to the answer."""

    def __init__(self, desk: Desk, case: Case) -> None:
        self._desk = desk
        self._case = case
        self._count = len(desk.commits.commits)
        self._options = desk.journal.plan.search

    def finding(self) -> Finding:
        """Search, and put the answer together."""
        desk = self._desk
        desk.perform(self._second_bad_run, self._judge, self._refuse)
        if not self._case.is_finite(self._case.bad):
            raise EndpointError(
                f"The {desk.terms.new_end} {desk.commits.bad.short} goes NaN and the {desk.terms.old_end} doesn't "
                "repeat itself bit for bit: there is no size to measure. Hunt the NaN itself: --regress nan."
            )
        desk.perform(self._agenda, self._judge, self._tell)
        outlook = self._outlook([], 0)
        last = self._count - 1
        runs = len(self._usable())
        if not self._places():
            reason = (
                "No commit of the range changes anything that the runs read, so both ends give the same run: what lies "
                "between them is noise, or comes from outside the commits."
            )
            return self._finding(Answer.NO_CULPRIT, reason, -1, last, outlook)
        if outlook.is_unchanged:
            reason = (
                f"The ends don't differ beyond their noise in {runs} runs: no change is "
                f"{outlook.belief.no_change:.0%} likely."
            )
            return self._finding(Answer.NO_CULPRIT, reason, -1, last, outlook)
        held = outlook.candidates
        separation = outlook.belief.separation
        apart = "" if separation is None else f", {min(separation, 999):.1f} noise widths from the commits before it"
        if len(held) == 1:
            name = desk.commits.at(held[0]).short
            sure = f"the {desk.terms.first} with a probability of {outlook.probability:.3f}{apart}"
            if doubt := self._doubt(outlook):
                reason = f"{name} looks like {sure}, but it is not confirmed: {doubt}."
                return self._finding(Answer.UNCONFIRMED, reason, held[0] - 1, held[0], outlook)
            reason = f"{name} is {sure}."
            return self._finding(Answer.FOUND, reason, held[0] - 1, held[0], outlook)
        reason = f"One of {len(held)} commits, with a probability of {outlook.probability:.3f}, after {runs} runs."
        return self._finding(Answer.SEVERAL, reason, held[0] - 1, held[-1], outlook)

    def _doubt(self, outlook: Outlook) -> str | None:
        """What speaks against the commit that is likeliest, a clause."""
        if outlook.unconfirmed:
            names = " and ".join(self._desk.commits.at(index).short for index in outlook.unconfirmed)
            return f"{names} can't be run"
        if contradict(self._count, self._readings(self._scores()), Evidence.SCORE, self._places()):
            return "commits that change nothing that was read give different runs. Search all of them: --no-prune"
        return None

    def judge_without(self, _finding: Finding) -> Callable[[RunLog], CurveVerdict]:
        """How the bad end without the culprit is judged: by its place on the way between the ends."""
        return lambda log: self._judge(Job(role=Role.REVERTED, index=self._count), log, is_cut=False)

    def _second_bad_run(self, going: Sequence[Job], _free: int) -> Agenda:
        job = Job(role=Role.BAD_AGAIN, index=self._count - 1)
        is_there = self._desk.journal.find(job.role, job.index) is not None
        return Agenda(start=[] if is_there or job in going else [job])

    def _agenda(self, going: Sequence[Job], free: int) -> Agenda:
        outlook = self._outlook([job.index for job in going], free)
        return Agenda(start=[self._job(index) for index in outlook.wanted], drop=going if outlook.is_over else ())

    def _job(self, index: int) -> Job:
        role = {-1: Role.GOOD_AGAIN, self._count - 1: Role.BAD_AGAIN}.get(index, Role.SEARCH)
        return Job(role=role, index=index)

    def _outlook(self, running: Sequence[int], free: int) -> Outlook:
        found = self._scores()
        return look_ahead(
            self._count,
            self._readings(found),
            Evidence.SCORE,
            confidence=self._options.confidence,
            free=free,
            running=running,
            skipped=self._desk.commits.skipped
            | {step.index for step in self._desk.steps if step not in self._usable()}
            | {step.index for step, score in found if score.is_other},
            places=self._places(),
        )

    def _readings(self, found: Sequence[tuple[BisectStep, Score]]) -> list[Reading]:
        return [Reading(index=step.index, value=score.value) for step, score in found if not score.is_other]

    def _places(self) -> Sequence[int]:
        return places_left(self._desk.steps, self._count)

    def _scores(self) -> list[tuple[BisectStep, Score]]:
        """Each usable run with its score; the ends' runs first."""
        sides: dict[int, list[BisectStep]] = {0: [], 1: [], 2: []}
        for step in self._usable():
            sides[{-1: 0, self._count - 1: 1}.get(step.index, 2)].append(step)
        curves = [[self._case.values(self._desk.read(step)) for step in side] for side in sides.values()]
        return list(zip([*sides[0], *sides[1], *sides[2]], scores(*curves), strict=True))

    def _usable(self) -> list[BisectStep]:
        return [
            step
            for step in self._desk.steps
            if step.record.outcome is Outcome.FINISHED
            and step.verdict is not CommitVerdict.SKIP
            and step.role not in (Role.REVERTED, Role.WARM_UP)
        ]

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        """A first word on a run; what counts in the end is its score among all others."""
        assert not is_cut, "noisy runs run whole"
        if gap := self._case.lack(log):
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=gap)
        if not self._case.is_finite(log):
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason="it goes NaN, which has no size: use --regress nan")
        goods, bads = self._ends()
        if job.index == -1 or len(bads) < 2:
            verdict = CommitVerdict.GOOD if job.index == -1 else CommitVerdict.BAD
            return CurveVerdict(verdict=verdict, reason="one more run of the end")
        score = scores(goods, bads, [self._case.values(log)])[-1]
        if score.is_other:
            return CurveVerdict(
                verdict=CommitVerdict.OTHER, reason="matches neither end: far beside the way between them"
            )
        verdict = CommitVerdict.BAD if score.value > _HALF else CommitVerdict.GOOD
        terms = self._desk.terms
        reason = f"{score.value:.2f} of the way from the {terms.old_end} to the {terms.new_end}"
        return CurveVerdict(verdict=verdict, reason=reason)

    def _ends(self) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
        logs = {
            index: [dict(self._case.values(self._desk.read(s))) for s in self._usable() if s.index == index]
            for index in (-1, self._count - 1)
        }
        return logs[-1], logs[self._count - 1]

    def _refuse(self, step: BisectStep) -> None:
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(self._desk, step))

    def _tell(self, _step: BisectStep) -> None:
        self._desk.say(EventKind.NARROWED, outlook_text(self._desk.commits, self._outlook([], 0)))

    def _finding(self, answer: Answer, reason: str, good: int, bad: int, outlook: Outlook) -> Finding:
        return finding_of(self._desk, self._case, answer, reason, good=good, bad=bad, probability=outlook.probability)
