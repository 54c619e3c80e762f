"""Every change of a range: where neighbouring runs differ.

A stretch whose two ends aren't alike is halved until they are neighbours; one whose ends are alike is taken to
hold no change, which probes can check. That takes about k log2(N / k) runs for k changes in N commits.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from lossbisect.bisect.case import Case
from lossbisect.bisect.culprit import Answer, Change, Finding
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.exact import finding_of
from lossbisect.bisect.judging import CurveVerdict, missing_iterations
from lossbisect.bisect.known import run_of, unconfirmed_skips
from lossbisect.bisect.line import spread
from lossbisect.bisect.search import narrow
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.compare.wording import counted
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.curves import with_console

__all__ = ["ChangeHunt", "CurveChanges"]


class ChangeHunt(ABC):
    """The search for every change, from the ends to the list."""

    def __init__(self, desk: Desk, skips_enough: int) -> None:
        self._desk = desk
        self._skips_enough = skips_enough
        self._last = len(desk.commits.commits) - 1
        self._same: dict[tuple[int, int], bool] = {}

    @abstractmethod
    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        """What the curves of a run say about its commit."""

    @abstractmethod
    def _is_alike(self, before: BisectStep, after: BisectStep) -> bool:
        """Whether two runs show the same."""

    @abstractmethod
    def _change(self, low: int, high: int) -> Change:
        """What lies between two neighbours that aren't alike."""

    @abstractmethod
    def _told(self, answer: Answer, reason: str, changes: tuple[Change, ...]) -> Finding:
        """The answer."""

    def finding(self) -> Finding:
        """Search, and list the changes, oldest first."""
        self._desk.perform(self._agenda, self._judge)
        stretches = [(low, high) for low, high in self._stretches() if not self._is_same(low, high)]
        changes = tuple(self._change(low, high) for low, high in stretches)
        probes = len(spread(-1, self._last, self._desk.journal.plan.search.probe))
        checked = f" and at {counted(probes, 'commit')} in between" if probes else ""
        name = counted(len(changes), "change")
        reason = (
            f"{name} between {self._desk.commits.good.short} and {self._desk.commits.bad.short}."
            if changes
            else f"The {self._desk.terms.trait} is the same at both ends{checked}."
        )
        return self._told(Answer.EVERY_CHANGE if changes else Answer.NO_CULPRIT, reason, changes)

    def _agenda(self, going: Sequence[Job], free: int) -> Agenda:
        running = [job.index for job in going]
        verdicts = self._desk.verdicts
        points = spread(-1, self._last, self._desk.journal.plan.search.probe)
        start = [Job(role=Role.PROBE, index=i) for i in points if i not in verdicts and i not in running]
        again = [i for i in unconfirmed_skips(self._desk.steps) if i not in running]
        start += [Job(role=Role.SEARCH, index=i) for i in again]
        if not start or len(start) < free:
            start += self._halvings(verdicts, running, max(1, free - len(start)))
        return Agenda(start=start)

    def _halvings(self, verdicts: dict[int, CommitVerdict], running: Sequence[int], free: int) -> list[Job]:
        """Midpoints of stretches that hold a change, the widest first, spread over the free slots."""
        open_ = [(low, high) for low, high in self._stretches() if high - low > 1 and not self._is_same(low, high)]
        jobs: list[Job] = []
        for low, high in sorted(open_, key=lambda stretch: stretch[0] - stretch[1]):
            skipped = {i - low - 1: v for i, v in verdicts.items() if low < i < high and v is CommitVerdict.SKIP}
            inner = [i - low - 1 for i in running if low < i < high]
            share = max(1, free // len(open_)) if free > len(jobs) else 0
            if share and not (inner and len(open_) > 1):
                found = narrow(high - low, skipped, jobs=share, running=inner, skips_enough=self._skips_enough)
                jobs += [Job(role=Role.SEARCH, index=low + 1 + i) for i in found.wanted]
        return jobs[:free]

    def _stretches(self) -> list[tuple[int, int]]:
        usable = {-1, self._last}
        usable |= {i for i, v in self._desk.verdicts.items() if v is not CommitVerdict.SKIP}
        return list(pairwise(sorted(usable)))

    def _is_same(self, low: int, high: int) -> bool:
        if (low, high) not in self._same:
            self._same[low, high] = self._is_alike(self._run_at(low), self._run_at(high))
        return self._same[low, high]

    def _run_at(self, index: int) -> BisectStep:
        step = run_of(self._desk.steps, index)
        assert step is not None, f"{index} has not run"
        return step


class CurveChanges(ChangeHunt):
    """Every change of a curve."""

    def __init__(self, desk: Desk, case: Case, skips_enough: int) -> None:
        super().__init__(desk, skips_enough)
        self._case = case

    def _is_alike(self, before: BisectStep, after: BisectStep) -> bool:
        between = self._case.compare(self._desk.read(before), self._desk.read(after))
        return between.verdict is not CommitVerdict.BAD

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        assert not is_cut, f"{job}: every curve is wanted whole"
        if gap := missing_iterations(self._case.good, log, metric=self._case.metric):
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=gap)
        against = self._case.compare(self._case.good, log)
        if against.verdict is not CommitVerdict.BAD:
            return CurveVerdict(verdict=CommitVerdict.GOOD, reason=against.reason)
        is_bad = self._case.compare(self._case.bad, log).verdict is not CommitVerdict.BAD
        return CurveVerdict(
            verdict=CommitVerdict.BAD if is_bad else CommitVerdict.OTHER, reason=against.reason, is_bad_curve=is_bad
        )

    def _change(self, low: int, high: int) -> Change:
        from lossbisect.compare import compare_logs

        steps = [self._run_at(index) for index in (low, high)]
        before, after = (with_console(self._desk.read(step), step.record) for step in steps)
        judgement = compare_logs(before, after, metric=self._case.metric, tolerance=self._case.noise)
        return Change(good=low, bad=high, judgement=judgement)

    def _told(self, answer: Answer, reason: str, changes: tuple[Change, ...]) -> Finding:
        return finding_of(self._desk, self._case, answer, reason, good=-1, bad=self._last, changes=changes)
