"""The search along a line of commits where every verdict is right, whatever it is that a run is judged by."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from lossbisect.bisect.cutting import Cutter
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.ends import why_not
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.known import failed_in_a_row, reverts_of, unconfirmed_skips
from lossbisect.bisect.likely import preferred_in
from lossbisect.bisect.search import Bracket, narrow
from lossbisect.bisect.telling import narrowed_text
from lossbisect.bisect.types import BisectStep, CommitInfo, CommitVerdict, Role
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome

__all__ = ["REPEATED", "LineSearch", "spread"]

SKIPS_BEFORE_DOUBT = 3
"""Failed runs in a row after which the good end is run once more: it may be the machine that fails, not the commits."""
REPEATED = (Role.PARENT_AGAIN, Role.CULPRIT_AGAIN, Role.PARENT_CHECKED, Role.CULPRIT_CHECKED)
"""Runs that have to give what the commit's first run gave."""
_SPARE = 3
"""Once so few candidates are left, free slots run the likely answer again instead of nothing."""


class LineSearch(ABC):
    """From two ends that differ to the commit between them, run again and confirmed."""

    def __init__(
        self, desk: Desk, skips_enough: int, *, harmless: Callable[[CommitInfo], str | None] = lambda _: None
    ) -> None:
        self._desk = desk
        self._terms = desk.terms
        self._harmless = harmless
        self._skips_enough = skips_enough
        self._last = len(desk.commits.commits) - 1
        self._target = self._last
        self._bracket: Bracket | None = None
        self._preferred: tuple[Sequence[int], ...] = ()

    @abstractmethod
    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        """What the curves of a run say about its commit."""

    def _cutter(self, _job: Job, _out: Path) -> Cutter | None:
        """What ends a run before its time."""
        return None

    def _side(self, verdict: CommitVerdict) -> CommitVerdict:
        """Where to look on. What is neither end's is not what is looked for: there the change is still to come."""
        return CommitVerdict.GOOD if verdict is CommitVerdict.OTHER else verdict

    def _search(self) -> Bracket:
        self._preferred = preferred_in(self._desk)
        self._desk.cutter = self._cutter
        self._bracket = self._narrowed([], 1)
        self._desk.perform(self._agenda, self._judge, self._tell)
        self._desk.cutter = lambda _job, _out: None
        return self._narrowed([], 1)

    def _agenda(self, going: Sequence[Job], free: int) -> Agenda:
        steps = self._desk.steps
        if self._is_doubtful():
            return Agenda(start=[] if going else [Job(role=Role.CANARY, index=-1)])
        searching = [job.index for job in going if job.role is Role.SEARCH]
        bracket = self._narrowed(searching, max(1, free))
        again = [i for i in unconfirmed_skips(steps) if bracket.good < i < bracket.bad and i not in searching]
        start = [Job(role=Role.SEARCH, index=i) for i in [*again, *bracket.wanted]]
        drop = [job for job in going if not _is_of_use(job, bracket)]
        if len(bracket.candidates) == 1:
            start = self._after_the_search(bracket, going)
        elif len(start) < free and self._desk.slots > 1 and len(bracket.candidates) <= _SPARE:
            start += self._confirmations(bracket, going)
        return Agenda(start=start, drop=drop)

    def _after_the_search(self, bracket: Bracket, going: Sequence[Job]) -> list[Job]:
        """Whether the change was taken back after this commit, and came again; then the commit and its parent again."""
        commits, verdicts = self._desk.commits.commits, self._desk.verdicts
        hints = [i for i in reverts_of(commits, bracket.bad) if i < self._target]
        probes = spread(bracket.bad, self._target, self._desk.journal.plan.search.probe)
        later = [i for i in dict.fromkeys([*hints, *probes]) if i not in verdicts]
        jobs = [Job(role=Role.SEARCH, index=i) for i in later]
        return [*(job for job in jobs if job not in going), *self._confirmations(bracket, going)]

    def _confirmations(self, bracket: Bracket, going: Sequence[Job]) -> list[Job]:
        jobs = [
            Job(role=Role.PARENT_AGAIN, index=bracket.good),
            Job(role=Role.CULPRIT_AGAIN, index=bracket.bad),
        ]
        return [job for job in jobs if job not in going and self._desk.journal.find(job.role, job.index) is None]

    def _changed_inside(self) -> int | None:
        """Run inner commits between ends that are equal; the first one that isn't becomes the bad end."""
        count = self._desk.journal.plan.search.probe
        points = [i for i in spread(-1, self._last, count) if i not in self._desk.commits.skipped]
        self._desk.perform(lambda going, _free: self._missing(Role.PROBE, points, going), self._judge)
        verdicts = self._desk.verdicts
        changed = [index for index in points if verdicts.get(index) in (CommitVerdict.BAD, CommitVerdict.OTHER)]
        self._target = changed[0] if changed else self._target
        return changed[0] if changed else None

    def _missing(self, role: Role, points: Sequence[int], going: Sequence[Job]) -> Agenda:
        jobs = [Job(role=role, index=index) for index in points]
        tried = {step.index for step in self._desk.steps if step.role is role}
        return Agenda(start=[job for job in jobs if job not in going and job.index not in tried])

    def _narrowed(self, running: Sequence[int], jobs: int) -> Bracket:
        sides = {i: self._side(verdict) for i, verdict in self._desk.verdicts.items()}
        return narrow(
            self._target + 1,
            {i: side for i, side in sides.items() if i < self._target},
            jobs=jobs,
            running=running,
            preferred=self._preferred,
            skips_enough=self._skips_enough,
        )

    def _tell(self, step: BisectStep) -> None:
        if step.role not in (Role.SEARCH, Role.PROBE):
            self._check_canary(step)
            return
        before, self._bracket = self._bracket, self._narrowed([], 1)
        assert before is not None
        text = narrowed_text(self._desk.commits, before, self._bracket, self._desk.slots)
        self._desk.say(EventKind.NARROWED, text, rounds_left=self._bracket.rounds_left(self._desk.slots))

    def _verdict_at(self, index: int) -> CommitVerdict:
        if index == -1:
            return CommitVerdict.GOOD
        if index == self._last:
            return CommitVerdict.BAD
        return self._desk.verdicts[index]

    def _is_doubtful(self) -> bool:
        failed = {step.index for step in failed_in_a_row(self._desk.steps)}
        passed = sum(step.role is Role.CANARY for step in self._desk.steps)
        return len(failed) >= SKIPS_BEFORE_DOUBT << passed

    def _doubt_the_machine(self) -> None:
        """After some failed runs in a row, see whether the good end still runs, and still gives its curve."""
        self._desk.perform(
            lambda going, _free: Agenda(
                start=[Job(role=Role.CANARY, index=-1)] if self._is_doubtful() and not going else []
            ),
            self._judge,
            self._check_canary,
        )

    def _check_canary(self, step: BisectStep) -> None:
        """Raise if the good end no longer does what it did.

        Raises:
            EndpointError: It fails: the failed runs say nothing and are taken back. Or its curve is another one.
        """
        if step.role is not Role.CANARY:
            return
        failed = failed_in_a_row(self._desk.steps)
        end = self._terms.old_end
        if step.record.outcome is not Outcome.FINISHED:
            self._desk.journal.forget(failed, f"the {end} failed too")
            raise EndpointError(
                f"{len({each.index for each in failed})} commits failed in a row, and now the {end} fails too: it "
                "is the machine or the environment, not the commits. They are taken back. " + why_not(self._desk, step)
            )
        if step.verdict is CommitVerdict.BAD:
            raise EndpointError(
                f"The {end} {self._desk.commits.good.short} no longer gives what it gave at first: {step.reason}. "
                "Something outside the code has changed. Start a new bisect."
            )

    def _doubts(self, bracket: Bracket) -> list[str]:
        """What speaks against the answer in further runs of the commit and its parent, a clause each.

        One that looks harmless runs once more for that.
        """
        doubts = self._doubts_in(bracket, Role.PARENT_AGAIN, Role.CULPRIT_AGAIN)
        if doubts or self._harmless(self._desk.commits.at(bracket.bad)) is None:
            return doubts
        roles = (Role.PARENT_CHECKED, Role.CULPRIT_CHECKED)
        checks = list(zip(roles, (bracket.good, bracket.bad), strict=True))
        self._desk.perform(lambda going, _free: self._unchecked(checks, going), self._judge)
        return self._doubts_in(bracket, *roles)

    def _doubts_in(self, bracket: Bracket, parent: Role, culprit: Role) -> list[str]:
        doubts = []
        for role, index in ((parent, bracket.good), (culprit, bracket.bad)):
            step = self._desk.journal.find(role, index)
            if step is None or step.verdict is CommitVerdict.SKIP:
                name = self._desk.commits.at(index).short
                doubts.append(f"{name}: {step.reason if step else 'it failed when it was run again'}")
        return doubts

    def _unchecked(self, checks: Sequence[tuple[Role, int]], going: Sequence[Job]) -> Agenda:
        jobs = [Job(role=role, index=index) for role, index in checks]
        tried = [(step.role, step.index) for step in self._desk.steps]
        return Agenda(start=[job for job in jobs if job not in going and (job.role, job.index) not in tried])


def _is_of_use(job: Job, bracket: Bracket) -> bool:
    """Whether what a run will show can still matter."""
    if job.role is Role.PARENT_AGAIN:
        return job.index == bracket.good
    if job.role is Role.CULPRIT_AGAIN:
        return job.index == bracket.bad
    return job.role is not Role.SEARCH or bracket.good < job.index < bracket.bad


def spread(low: int, high: int, count: int) -> list[int]:
    """At most ``count`` indices between two others, evenly apart."""
    inner = high - low - 1
    return sorted({low + 1 + (2 * n + 1) * inner // (2 * count) for n in range(min(count, inner))}) if inner > 0 else []
