"""The loop: run the ends, narrow the range, run the answer again.

It asks a `Runner` for runs and writes each one to the journal. Going on after a stop is the same loop: a run that the
journal holds isn't run again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.judging import CurveVerdict, judge_curves, measured_noise, missing_iterations
from lossbisect.bisect.search import SKIPS_ENOUGH, Bracket, narrow
from lossbisect.bisect.state import Journal
from lossbisect.bisect.types import BisectStep, CommitRange, CommitVerdict, Role
from lossbisect.compare.types import NoiseFloor
from lossbisect.compare.wording import counted
from lossbisect.errors import EndpointError, ParseError, StateError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["Event", "EventKind", "Runner", "drive"]

SKIPS_BEFORE_DOUBT = 3
"""Failed runs in a row after which the good end is run once more: it may be the machine that fails, not the commits."""
TAIL_LINES = 15


class Runner(Protocol):
    """What runs a commit."""

    def run(self, commit: str, out: Path, on_line: Callable[[str], None]) -> RunRecord:
        """Run a commit in the fresh folder ``out``; a failed training run is a record, not an exception."""
        ...

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a finished run."""
        ...


class EventKind(StrEnum):
    """What a progress message is about."""

    RESUMABLE = "resumable"
    """The text is the bisect's id: from here on it can be stopped and gone on with."""
    NOTE = "note"
    RUN_STARTED = "run started"
    LINE = "line"
    """A line that the running trainer printed."""
    RUN_FINISHED = "run finished"
    NARROWED = "narrowed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One progress message.

    Attributes:
        kind: What it is about.
        text: One line for a person.
    """

    kind: EventKind
    text: str


def drive(
    commits: CommitRange,
    journal: Journal,
    runner: Runner,
    *,
    on_event: Callable[[Event], None],
    skips_enough: int = SKIPS_ENOUGH,
) -> Finding:
    """Find where the curve changes between the good and the bad end.

    Args:
        commits: The range.
        journal: Where finished runs are kept. Those that it holds already aren't repeated.
        runner: What runs a commit.
        on_event: Called with each progress message.
        skips_enough: Passed to `narrow`.

    Raises:
        EndpointError: An end doesn't finish, or the good end doesn't repeat itself well enough.
        StateError: The journal can't be written, or a run's files are gone.
    """
    desk = _Desk(commits, journal, runner, on_event)
    last = len(commits.commits) - 1
    good = desk.end(Role.GOOD_END, -1)
    again = desk.end(Role.GOOD_AGAIN, -1)
    desk.calibrate(good, again)
    bad = desk.end(Role.BAD_END, last)
    ends = desk.judge(good, bad)
    if ends.verdict is CommitVerdict.GOOD:
        return desk.finding(Answer.NO_CULPRIT, f"The ends have the same curve: {ends.reason}.", good=-1, bad=last)
    if ends.verdict is CommitVerdict.SKIP:
        return desk.finding(Answer.UNDECIDED, f"The ends can't be told apart: {ends.reason}.", good=-1, bad=last)

    bracket = _search(desk, good, bad, skips_enough)
    if len(bracket.candidates) > 1:
        desk.doubt_the_machine(good)
        reason = f"One of {len(bracket.candidates)} commits: those before the last one can't be tested."
        return desk.finding(Answer.SEVERAL, reason, good=bracket.good, bad=bracket.bad)
    return _verify(desk, good, bracket)


def _search(desk: "_Desk", good: RunLog, bad: RunLog, skips_enough: int) -> Bracket:
    verdicts: dict[int, CommitVerdict] = {}
    bracket = narrow(len(desk.commits.commits), verdicts, skips_enough=skips_enough)
    while bracket.next is not None:
        verdicts[bracket.next] = desk.search_step(bracket.next, good, bad).verdict
        before, bracket = bracket, narrow(len(desk.commits.commits), verdicts, skips_enough=skips_enough)
        desk.say(EventKind.NARROWED, _narrowed(desk.commits, before, bracket))
    return bracket


def _verify(desk: "_Desk", good: RunLog, bracket: Bracket) -> Finding:
    """Run the culprit and its parent once more, perhaps hours later: that shows drift as well as noise."""
    doubts = [
        doubt
        for role, index in ((Role.PARENT_AGAIN, bracket.good), (Role.CULPRIT_AGAIN, bracket.bad))
        if (doubt := desk.repeats_itself(role, index, good))
    ]
    culprit = desk.commits.at(bracket.bad)
    if doubts:
        reason = f"{culprit.short} looks like the first bad commit, but it is not confirmed: {'; '.join(doubts)}."
        return desk.finding(Answer.UNCONFIRMED, reason, good=bracket.good, bad=bracket.bad)
    reason = f"{culprit.short} is the first bad commit: {desk.judge(good, desk.curves_of(bracket.bad)).reason}."
    return desk.finding(Answer.FOUND, reason, good=bracket.good, bad=bracket.bad)


class _Desk:
    """The collaborators of one bisection, and the questions that the loop asks them."""

    def __init__(
        self, commits: CommitRange, journal: Journal, runner: Runner, on_event: Callable[[Event], None]
    ) -> None:
        self.commits = commits
        self.noise = NoiseFloor(source="bit-exact", surely_noise_rel=0.0, surely_real_rel=0.0)
        self._journal = journal
        self._runner = runner
        self._on_event = on_event
        self._metric = journal.plan.metric

    def say(self, kind: EventKind, text: str) -> None:
        self._on_event(Event(kind=kind, text=text))

    def judge(self, baseline: RunLog, candidate: RunLog) -> CurveVerdict:
        return judge_curves(baseline, candidate, metric=self._metric, noise=self.noise)

    def end(self, role: Role, index: int) -> RunLog:
        """The curves of an end, which must be whole."""
        verdict = CommitVerdict.BAD if role is Role.BAD_END else CommitVerdict.GOOD
        known = self._journal.find(Role.GOOD_END, -1)

        def judge(log: RunLog) -> CurveVerdict:
            gap = missing_iterations(self._read(known) if known else log, log, metric=self._metric)
            return CurveVerdict(verdict=CommitVerdict.SKIP if gap else verdict, reason=gap or "as you said")

        step = self._step(role, index, judge)
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(self._why_not(step))
        return self._read(step)

    def calibrate(self, good: RunLog, again: RunLog) -> None:
        """Take the noise floor from the two runs of the good end, or check them against the one that was asked for."""
        asked = self._journal.plan.tolerance
        measured = measured_noise(good, again, metric=self._metric)
        if measured is None:
            raise EndpointError(
                f"The good end {self.commits.good.short} doesn't repeat itself: one of its two runs has no "
                f"{self._metric}, or none that is finite, where the other has one: {self._journal.directory / 'runs'}"
            )
        if asked is None:
            self.noise = measured
            if measured.surely_real_rel:
                up_to, beyond = f"{measured.surely_noise_rel:.1e}", f"{measured.surely_real_rel:.1e}"
                self.say(
                    EventKind.NOTE,
                    f"The good end doesn't repeat itself bit for bit: differences up to {up_to} count as noise, "
                    f"beyond {beyond} as real, and a commit in between is skipped.",
                )
            else:
                self.say(EventKind.NOTE, "The good end repeats itself bit for bit: any difference counts.")
            return
        self.noise = NoiseFloor(source="rtol" if asked else "bit-exact", surely_noise_rel=asked, surely_real_rel=asked)
        repeat = self.judge(good, again)
        if repeat.verdict is not CommitVerdict.GOOD:
            raise EndpointError(
                f"The good end {self.commits.good.short} doesn't repeat itself within the tolerance {asked:g}: "
                f"{repeat.reason}. Take a larger --tolerance, or none: then it is measured."
            )

    def search_step(self, index: int, good: RunLog, bad: RunLog) -> BisectStep:
        """Run and judge one commit in the range."""
        if self._journal.find(Role.SEARCH, index) is None:
            self.doubt_the_machine(good)
        is_bad_curve: bool | None = None

        def judge(log: RunLog) -> CurveVerdict:
            nonlocal is_bad_curve
            against_good = self.judge(good, log)
            if against_good.verdict is CommitVerdict.BAD:
                is_bad_curve = self.judge(bad, log).verdict is not CommitVerdict.BAD
            return against_good

        return self._step(Role.SEARCH, index, judge, lambda: is_bad_curve)

    def doubt_the_machine(self, good: RunLog) -> None:
        """After some failed runs in a row, see whether the good end still runs, and still gives its curve.

        Raises:
            EndpointError: It doesn't. The failed runs say nothing and are taken back.
        """
        failed = _failed_in_a_row(self._journal.steps)
        passed = sum(step.role is Role.CANARY for step in self._journal.steps)
        if len(failed) < SKIPS_BEFORE_DOUBT * 2**passed:
            return
        step = self._step(Role.CANARY, -1, lambda log: self.judge(good, log), is_new=True)
        if step.record.outcome is not Outcome.FINISHED:
            self._journal.forget(failed, "the good end failed too")
            raise EndpointError(
                f"{len(failed)} commits failed in a row, and now the good end fails too: it is the machine or the "
                f"environment, not the commits. They are taken back. {self._why_not(step)}"
            )
        if step.verdict is CommitVerdict.BAD:
            raise EndpointError(
                f"The good end {self.commits.good.short} no longer gives the curve that it gave at first: "
                f"{step.reason}. Something outside the code has changed. Start a new bisect."
            )

    def repeats_itself(self, role: Role, index: int, good: RunLog) -> str | None:
        """Why a commit's second run doesn't confirm its first, or None if it does."""
        first_log = self.curves_of(index)

        def judge(log: RunLog) -> CurveVerdict:
            repeat = self.judge(first_log, log)
            against_good = self.judge(good, log)
            wanted = CommitVerdict.BAD if role is Role.CULPRIT_AGAIN else CommitVerdict.GOOD
            if repeat.verdict is not CommitVerdict.BAD and against_good.verdict is wanted:
                return CurveVerdict(verdict=wanted, reason="the same curve again")
            reason = f"its second run differs from its first: {repeat.reason}"
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=reason)

        step = self._step(role, index, judge)
        return f"{self.commits.at(index).short}: {step.reason}" if step.verdict is CommitVerdict.SKIP else None

    def step_of(self, index: int) -> BisectStep:
        """The run on which a commit's verdict rests."""
        role = {-1: Role.GOOD_END, len(self.commits.commits) - 1: Role.BAD_END}.get(index, Role.SEARCH)
        step = self._journal.find(role, index)
        assert step is not None, f"{role} {index} has not run"
        return step

    def curves_of(self, index: int) -> RunLog:
        """The curves on which a commit's verdict rests."""
        return self._read(self.step_of(index))

    def finding(self, answer: Answer, reason: str, *, good: int, bad: int) -> Finding:
        """The answer with the curves on both of its sides."""
        from lossbisect.compare import compare_logs

        last_good, first_bad = self.curves_of(good), self.curves_of(bad)
        return Finding(
            answer=answer,
            reason=reason,
            good=good,
            bad=bad,
            steps=tuple(self._journal.steps),
            noise=self.noise,
            judgement=compare_logs(last_good, first_bad, metric=self._metric, tolerance=self.noise),
            warnings=(*self.commits.notes, *_warnings(self._journal.steps)),
        )

    def _step(
        self,
        role: Role,
        index: int,
        judge: Callable[[RunLog], CurveVerdict],
        is_bad_curve: Callable[[], bool | None] = lambda: None,
        *,
        is_new: bool = False,
    ) -> BisectStep:
        """The finished run from the journal, or a new one, judged and written down."""
        if not is_new and (done := self._journal.find(role, index)):
            return done
        commit = self.commits.at(index)
        self.say(
            EventKind.RUN_STARTED, f"Run {len(self._journal.steps) + 1} ({role.value}): {commit.short} {commit.subject}"
        )
        out = self._journal.run_directory(role, commit.sha)
        record = _checked(self._runner.run(commit.sha, out, lambda line: self.say(EventKind.LINE, line)), commit.sha)
        self._require_same_environment(record)
        if record.outcome is Outcome.FINISHED:
            try:
                judged = judge(self._runner.read(record))
            except ParseError as error:
                judged = CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"its curves can't be read: {error}")
        else:
            judged = CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
        step = BisectStep(
            role=role,
            index=index,
            commit=commit.sha,
            record=record,
            verdict=judged.verdict,
            reason=judged.reason,
            is_bad_curve=is_bad_curve(),
        )
        self._journal.append(step)
        self.say(
            EventKind.RUN_FINISHED,
            f"{commit.short} {step.verdict.value} after {record.duration_s:.0f} s: {step.reason}",
        )
        return step

    def _require_same_environment(self, record: RunRecord) -> None:
        """Refuse a run by another Python or torch than the good end's: a bisect that goes on may find them upgraded."""
        known = self._journal.find(Role.GOOD_END, -1)
        before, now = known.record.provenance if known else None, record.provenance
        if before is None or now is None or (before.python, before.torch) == (now.python, now.torch):
            return
        raise StateError(
            f"{record.out}: this run used Python {now.python} and torch {now.torch}, the good end had Python "
            f"{before.python} and torch {before.torch}. Their curves can't be compared. Start a new bisect."
        )

    def _read(self, step: BisectStep) -> RunLog:
        if not step.record.out.is_dir():
            raise StateError(f"{step.record.out}: the files of a finished run are gone. Start a new bisect.")
        return self._runner.read(step.record)

    def _why_not(self, step: BisectStep) -> str:
        which = "bad" if step.role is Role.BAD_END else "good"
        advice = (
            "A crash is no change of the loss and is not bisected here. Choose a bad end that runs."
            if which == "bad"
            else "Choose a good end and a recipe that run on this machine."
        )
        tail = _tail(step.record.console)
        return (
            f"The {which} end {self.commits.at(step.index).short} can't be judged: {step.reason}. {advice} "
            f"Its log: {step.record.console}" + (f"\n{tail}" if tail else "")
        )


def _checked(record: RunRecord, commit: str) -> RunRecord:
    """The record, void unless the run itself says that it was this commit's code, unchanged."""
    if record.outcome is not Outcome.FINISHED:
        return record
    ran = record.provenance
    if ran is None:
        return replace(record, outcome=Outcome.VOID, reason="the run didn't say which code it used")
    if ran.mcore_commit != commit:
        there = ran.mcore_commit or "no commit"
        reason = f"it used megatron.core from {ran.megatron_core_file}, which is at {there}, not at {commit}"
        return replace(record, outcome=Outcome.VOID, reason=reason)
    if ran.is_clean is False:
        return replace(record, outcome=Outcome.VOID, reason="tracked files of its tree were changed")
    return record


def _failed_in_a_row(steps: list[BisectStep]) -> list[BisectStep]:
    """The latest search runs that didn't finish, back to the last run that did."""
    failed: list[BisectStep] = []
    for step in reversed(steps):
        if step.record.outcome is Outcome.FINISHED:
            break
        if step.role is Role.SEARCH:
            failed.append(step)
    return failed


def _warnings(steps: Iterable[BisectStep]) -> tuple[str, ...]:
    bad = [step for step in steps if step.role is Role.SEARCH and step.verdict is CommitVerdict.BAD]
    own = sum(step.is_bad_curve is False for step in bad)
    if not own:
        return ()
    has = "has a curve of its own" if own == 1 else "have a curve of their own"
    warning = (
        f"{own} of {len(bad)} bad commits {has}, equal to neither end: more than one change lies in the range. "
        "The answer is the first one; bisect the rest with it as the good end."
    )
    return (warning,)


def _narrowed(commits: CommitRange, before: Bracket, after: Bracket) -> str:
    def name(bracket: Bracket) -> str:
        return f"[{commits.at(bracket.good).short}, {commits.at(bracket.bad).short}]"

    if before.candidates == after.candidates:
        found = f"Still {name(after)} ({len(after.candidates)} commits, {len(after.skipped)} untestable)"
    else:
        was, now = len(before.candidates), len(after.candidates)
        found = f"Narrowed from {name(before)} ({was} commits) to {name(after)} ({now})"
    left = counted(after.runs_left, "run")
    return f"{found}, about {left} left and 2 to confirm"


def _tail(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  | {line}" for line in lines[-TAIL_LINES:])
