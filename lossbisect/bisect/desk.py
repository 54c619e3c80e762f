"""Runs at work: started, watched, judged, and written to the journal, several at once.

What runs next is asked again after each run that ends, from the finished steps alone. So the order in which runs end
doesn't matter, and going on after a stop is the same as going on after a run.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lossbisect.bisect.cutting import Cutter
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.known import verdicts_of
from lossbisect.bisect.prune import equal_span
from lossbisect.bisect.state import Journal
from lossbisect.bisect.terms import terms_of
from lossbisect.bisect.types import BisectStep, CommitRange, CommitVerdict, Role
from lossbisect.errors import ParseError, RunCancelledError, StateError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.reads import reads_of
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["Agenda", "Desk", "Job", "Judge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A commit to run, and why.

    Attributes:
        role: Why.
        index: Its place in the range.
        without: Full SHA of a commit that is taken back on top of it.
    """

    role: Role
    index: int
    without: str | None = None


class Judge(Protocol):
    """Says what the curves of a run say about its commit."""

    def __call__(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        """The verdict; a run that was cut lacks the iterations after that."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Agenda:
    """What to do now.

    Attributes:
        start: Runs to start, the most useful first.
        drop: Runs that go on and whose result is no longer needed.
        ahead: Runs of the work that follows, to start where slots are left; they go on when this work is done.
    """

    start: Sequence[Job] = ()
    drop: Sequence[Job] = ()
    ahead: Sequence[Job] = ()


@dataclass(eq=False)
class _Running:
    job: Job
    out: Path
    future: "Future[RunRecord]"
    is_dropped: threading.Event
    cutter: Cutter | None
    is_ahead: bool


class Desk:
    """The collaborators of one bisection, and the runs that go on.

    Attributes:
        commits: The range.
        journal: Finished runs.
        slots: How many runs go on at once.
        kept: Indices of commits of which a run is in the store, ascending, in groups, the best first.
        terms: What both sides are called.
        cutter: What ends a run before its time.
        weigh: Judges how a run ended, in place of its curves; None: a run that doesn't finish is a skip.
    """

    def __init__(
        self,
        commits: CommitRange,
        journal: Journal,
        runner: Runner,
        on_event: Callable[[Event], None],
        slots: int,
        kept: Sequence[Sequence[int]] = (),
    ) -> None:
        self.commits = commits
        self.journal = journal
        self.slots = slots
        self.kept = kept
        self.terms = terms_of(journal.plan.search)
        self.cutter: Callable[[Job, Path], Cutter | None] = lambda _job, _out: None
        self.weigh: Callable[[Job, RunRecord], CurveVerdict] | None = None
        self._runner = runner
        self._on_event = on_event
        self._running: list[_Running] = []
        self._started = len(journal.steps)
        self._is_stopping = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._logs: dict[Path, RunLog] = {}

    def say(self, kind: EventKind, text: str, *, commit: str = "", rounds_left: int | None = None) -> None:
        """Tell whoever watches."""
        self._on_event(Event(kind=kind, text=text, commit=commit, rounds_left=rounds_left))

    @property
    def steps(self) -> list[BisectStep]:
        """Finished runs, in the order in which they ended."""
        return self.journal.steps

    @property
    def verdicts(self) -> dict[int, CommitVerdict]:
        """The verdict on each commit in between, where there is one; those that the user set aside are skips."""
        return {**dict.fromkeys(self.commits.skipped, CommitVerdict.SKIP), **verdicts_of(self.steps)}

    def perform(
        self,
        agenda: Callable[[Sequence[Job], int], Agenda],
        judge: Judge,
        on_step: Callable[[BisectStep], None] = lambda _: None,
    ) -> None:
        """Run what the agenda asks for until it asks for nothing and nothing goes on but runs of what follows.

        Args:
            agenda: Asked with the jobs that go on, those that were begun ahead of it too, and the number of free slots.
            judge: The verdict of a finished run from its curves.
            on_step: Told each new step.

        Raises:
            StateError: A run used another environment than the good end.
            LossbisectError: A run couldn't be started.
        """
        for each in self._running:
            each.is_ahead = False
        try:
            while True:
                going = [each for each in self._running if not each.is_dropped.is_set()]
                plan = agenda([each.job for each in going], self.slots - len(going))
                for job in plan.drop:
                    self._drop(job)
                for job in plan.start[: self._free]:
                    self._start(job)
                ours = [each for each in self._running if not each.is_ahead]
                if all(each.is_dropped.is_set() for each in ours):
                    self._wait_for(ours)
                    return
                for job in plan.ahead[: self._free]:
                    self._start(job, is_ahead=True)
                done, _ = wait([each.future for each in ours], return_when=FIRST_COMPLETED)
                for each in [each for each in ours if each.future in done]:
                    if (step := self._finish(each, judge)) is not None:
                        on_step(step)
        except BaseException:
            self.stop()
            raise

    def drop_what_is_ahead(self) -> None:
        """End the runs that were begun for the work that follows: it is another one."""
        for each in self._running:
            each.is_dropped.set()

    def stop(self) -> None:
        """End the runs that go on, and wait for them."""
        self._is_stopping.set()
        self._wait_for(self._running)
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def read(self, step: BisectStep) -> RunLog:
        """The curves of a step.

        Raises:
            StateError: They are gone.
        """
        if step.record.out not in self._logs and not step.record.out.is_dir():
            raise StateError(f"{step.record.out}: the files of a finished run are gone. Start a new bisect.")
        return self.read_record(step.record)

    def read_record(self, record: RunRecord) -> RunLog:
        """The curves of a run, whether it's a step yet or not.

        Raises:
            ParseError: They can't be read.
        """
        if record.out not in self._logs:
            self._logs[record.out] = self._runner.read(record)
        return self._logs[record.out]

    @property
    def _free(self) -> int:
        return self.slots - sum(not each.is_dropped.is_set() for each in self._running)

    def _drop(self, job: Job) -> None:
        next(each for each in self._running if each.job == job and not each.is_dropped.is_set()).is_dropped.set()

    def _start(self, job: Job, *, is_ahead: bool = False) -> None:
        commit = self.commits.at(job.index)
        number = len(self.steps) + len(self._running) + 1
        text = f"Run {number} ({self.terms.role(job.role)}): {commit.short} {commit.subject}"
        self.say(EventKind.RUN_STARTED, text, commit=commit.short)
        out = self.journal.run_directory(job.role, commit.sha)
        before = 0
        if job.without is None:
            before = sum(step.commit == commit.sha and step.role is not Role.REVERTED for step in self.steps)
            before += sum(each.job.index == job.index for each in self._running)
        is_dropped, cutter = threading.Event(), self.cutter(job, out)

        def should_stop() -> bool:
            if is_dropped.is_set() or self._is_stopping.is_set():
                raise RunCancelledError("Nobody needs this run any more.")
            return cutter is not None and cutter.is_sure()

        def run() -> RunRecord:
            prefix = f"{commit.short} " if self.slots > 1 else ""
            return self._runner.run(
                commit.sha,
                out,
                lambda line: self.say(EventKind.LINE, prefix + line, commit=commit.short),
                repeat=None if job.role is Role.CANARY else before,
                should_stop=should_stop,
                without=job.without,
            )

        if self._pool is None:
            # Dropped runs need a moment to end; whoever takes their place must not wait for a thread.
            self._pool = ThreadPoolExecutor(max_workers=2 * self.slots, thread_name_prefix="run")
        future = self._pool.submit(run)
        self._running.append(
            _Running(job=job, out=out, future=future, is_dropped=is_dropped, cutter=cutter, is_ahead=is_ahead)
        )

    def _wait_for(self, runs: Sequence[_Running]) -> None:
        wait([each.future for each in runs])
        for each in runs:
            each.future.exception()  # whatever went wrong in a run that nobody needs any more doesn't matter
        self._running = [each for each in self._running if each not in runs]

    def _finish(self, each: _Running, judge: Judge) -> BisectStep | None:
        self._running.remove(each)
        commit = self.commits.at(each.job.index)
        try:
            record = each.future.result()
        except RunCancelledError:
            if each.is_dropped.is_set():
                return None
            raise
        if each.is_dropped.is_set() and record.outcome is not Outcome.FINISHED:
            return None  # ended because nobody needs it: how it ended says nothing
        if record.outcome is Outcome.CUT and each.cutter is not None and each.cutter.reason is not None:
            record = replace(record, reason=each.cutter.reason)
        record = _checked(record, commit.sha)
        self._require_same_environment(record)
        try:
            if self.weigh is not None:
                judged = self.weigh(each.job, record)
            elif record.outcome in (Outcome.FINISHED, Outcome.CUT):
                judged = judge(each.job, self.read_record(record), is_cut=record.outcome is Outcome.CUT)
            else:
                judged = CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
        except ParseError as error:
            judged = CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"its curves can't be read: {error}")
        step = BisectStep(
            role=each.job.role,
            index=each.job.index,
            commit=commit.sha,
            record=record,
            verdict=judged.verdict,
            reason=judged.reason,
            is_bad_curve=judged.is_bad_curve,
            span=None if each.job.without else self._span(each.job.index, record, judged.verdict),
        )
        self.journal.append(step)
        took = "from the run store" if record.stored_as is not None else f"after {record.duration_s:.0f} s"
        cut = f" ({record.reason})" if record.outcome is Outcome.CUT else ""
        text = f"{commit.short} {self.terms.verdict(step.verdict)} {took}{cut}: {step.reason}"
        self.say(EventKind.RUN_FINISHED, text, commit=commit.short)
        return step

    def _span(self, index: int, record: RunRecord, verdict: CommitVerdict) -> tuple[int, int] | None:
        """The commits that give this run, if it is known what it read."""
        if verdict is CommitVerdict.SKIP or self.commits.changes is None or (reads := reads_of(record)) is None:
            return None
        span = equal_span(index, self.commits.changes, reads)
        return span[0], span[-1]

    def _require_same_environment(self, record: RunRecord) -> None:
        """Refuse a run by another Python or torch than the good end's: a bisect that goes on may find them upgraded."""
        known = self.journal.find(Role.GOOD_END, -1)
        before, now = known.record.provenance if known else None, record.provenance
        if before is None or now is None or (before.python, before.torch) == (now.python, now.torch):
            return
        raise StateError(
            f"{record.out}: this run used Python {now.python} and torch {now.torch}, the good end had Python "
            f"{before.python} and torch {before.torch}. Their curves can't be compared. Start a new bisect."
        )


def _checked(record: RunRecord, commit: str) -> RunRecord:
    """The record, void unless the run itself says that it was this commit's code, unchanged."""
    if record.outcome not in (Outcome.FINISHED, Outcome.CUT, Outcome.FAILED):
        return record
    ran = record.provenance
    if ran is None and record.outcome is Outcome.FAILED:
        return record  # it failed before it could say so
    if ran is None:
        return replace(record, outcome=Outcome.VOID, reason="the run didn't say which code it used")
    asked = record.spec.sources
    wanted = asked.mcore_commit if asked.stands_for == commit else commit
    if ran.mcore_commit != wanted:
        there = ran.mcore_commit or "no commit"
        reason = f"it used megatron.core from {ran.megatron_core_file}, which is at {there}, not at {wanted}"
        return replace(record, outcome=Outcome.VOID, reason=reason)
    if ran.is_clean is False:
        return replace(record, outcome=Outcome.VOID, reason="tracked files of its tree were changed")
    return record
