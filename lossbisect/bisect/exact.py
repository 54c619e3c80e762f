"""The search by curves where runs repeat themselves, or a tolerance says what counts as the same."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lossbisect.bisect.case import Case, until
from lossbisect.bisect.culprit import Answer, Change, Finding
from lossbisect.bisect.cutting import Cutter, may_cut
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.judging import CurveVerdict, curve
from lossbisect.bisect.known import run_of
from lossbisect.bisect.line import REPEATED, LineSearch
from lossbisect.bisect.search import Bracket, narrow
from lossbisect.bisect.telling import warnings_about
from lossbisect.bisect.types import CommitInfo, CommitVerdict, Role
from lossbisect.bisect.verify import against_parent
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.curves import with_console

__all__ = ["ExactHunt", "finding_of"]


class ExactHunt(LineSearch):
    """One search, from the ends to the answer."""

    def __init__(
        self,
        desk: Desk,
        case: Case,
        skips_enough: int,
        *,
        harmless: Callable[[CommitInfo], str | None] = lambda _: None,
    ) -> None:
        super().__init__(desk, skips_enough, harmless=harmless)
        self._case = case
        self._notes: tuple[str, ...] = ()

    def finding(self) -> Finding:
        """Search, and put the answer together."""
        desk, case = self._desk, self._case
        ends = case.judge(case.bad)
        if ends.verdict is CommitVerdict.SKIP:
            reason = f"The ends can't be told apart: {ends.reason}."
            return self._finding(Answer.UNDECIDED, reason, -1, self._last)
        if ends.verdict is CommitVerdict.GOOD and not self._probe():
            probes = sum(step.role is Role.PROBE for step in desk.steps)
            probed = f" So do {probes} commits in between." if probes else ""
            reason = f"The ends have the same curve: {ends.reason}.{probed}"
            return self._finding(Answer.NO_CULPRIT, reason, -1, self._last)
        bracket = self._search()
        if len(bracket.candidates) > 1:
            self._doubt_the_machine()
            reason = f"One of {len(bracket.candidates)} commits: those before the last one can't be tested."
            return self._finding(Answer.SEVERAL, reason, bracket.good, bracket.bad)
        return self._answer(bracket)

    def judge_without(self, finding: Finding) -> Callable[[RunLog], CurveVerdict]:
        """How the bad end without the culprit is judged."""
        return against_parent(self._desk, self._case, finding)

    def _probe(self) -> bool:
        """Whether a commit between ends that are equal isn't; it becomes the bad end."""
        inner = self._changed_inside()
        if inner is None:
            return False
        self._case = replace(self._case, bad=self._log_at(inner))
        name = self._desk.commits.at(inner).short
        note = f"The ends are equal, but {name} in between isn't: the change was taken back."
        self._notes = (note,)
        self._desk.say(EventKind.NOTE, note)
        return True

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        if job.role is Role.CANARY:
            return self._case.compare(self._case.good, log)
        if job.role not in REPEATED:
            return self._case.judge_cut(log) if is_cut else self._case.judge(log)
        first = run_of(self._desk.steps, job.index)
        assert first is not None, f"{job} has no first run"
        before = self._desk.read(first)
        same = until(log, max(curve(before, self._case.metric)))  # what was judged the first time
        repeat = self._case.compare(before, same)
        now = self._case.judge_cut(same)
        wanted = self._verdict_at(job.index)
        if repeat.verdict is not CommitVerdict.BAD and now.verdict is wanted:
            return CurveVerdict(verdict=wanted, reason=f"the same curve again{self._later(log, wanted)}")
        reason = repeat.reason if repeat.verdict is CommitVerdict.BAD else now.reason
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"its second run differs from its first: {reason}")

    def _later(self, log: RunLog, wanted: CommitVerdict) -> str:
        """What the iterations say that the first run didn't come to, a clause; empty if they say the same."""
        whole = self._case.judge(log)
        return "" if whole.verdict is wanted else f"; what comes later is another one: {whole.reason}"

    def _cutter(self, job: Job, out: Path) -> Cutter | None:
        case = self._case
        if job.role is not Role.SEARCH or case.noise.source != "bit-exact" or not may_cut(self._desk.journal.plan):
            return None
        ends = (curve(case.good, case.metric), curve(case.bad, case.metric))
        return Cutter(out / "scalars.ndjson", case.metric, lambda: ends)

    def _answer(self, bracket: Bracket) -> Finding:
        name, first = self._desk.commits.at(bracket.bad).short, self._terms.first
        doubts = self._doubts(bracket)
        shown = self._case.judge_cut(self._log_at(bracket.bad)).reason
        if doubts:
            reason = f"{name} looks like the {first}, but it is not confirmed: {'; '.join(doubts)}."
            return self._finding(Answer.UNCONFIRMED, reason, bracket.good, bracket.bad)
        if bracket.good >= 0 and self._verdict_at(bracket.good) is CommitVerdict.OTHER:
            return self._after_another_change(bracket, shown)
        return self._finding(Answer.FOUND, f"{name} is the {first}: {shown}.", bracket.good, bracket.bad)

    def _after_another_change(self, bracket: Bracket, shown: str) -> Finding:
        """The culprit's parent matches neither end: find where the good end's curve was left.

        If nothing but that change lies before the culprit, the culprit leads to the bad end; if the curve in between
        could hide another one, all commits from the first change on are candidates.
        """
        commits = self._desk.commits
        until_ = bracket.good

        def left(running: Sequence[int] = (), jobs: int = 1) -> Bracket:
            verdicts = self._desk.verdicts
            sides = {i: CommitVerdict.BAD if v is CommitVerdict.OTHER else v for i, v in verdicts.items() if i < until_}
            return narrow(until_ + 1, sides, jobs=jobs, running=running, skips_enough=self._skips_enough)

        def agenda(going: Sequence[Job], free: int) -> Agenda:
            now = left([job.index for job in going], max(1, free))
            return Agenda(start=[Job(role=Role.SEARCH, index=i) for i in now.wanted])

        name = commits.at(bracket.bad).short
        self._desk.say(EventKind.NOTE, f"The parent of {name} matches neither end: another change lies before it.")
        self._desk.perform(agenda, self._judge)
        first = left()
        start = commits.at(first.bad).short
        between = self._case.compare(self._log_at(first.bad), self._log_at(bracket.good))
        is_number = self._case.is_finite(self._log_at(bracket.good))
        if between.verdict is CommitVerdict.GOOD and is_number and len(first.candidates) == 1:
            self._notes += (f"{start} changed the curve too, into one that matches neither end.",)
            leads = f"{name} is the change that leads to the {self._terms.new_end}"
            reason = f"{leads}: {shown}. Before it, {start} changed the curve."
            return self._finding(Answer.FOUND, reason, bracket.good, bracket.bad)
        reason = (
            f"{start} leaves the {self._terms.old_end}'s curve and {name} leads to the {self._terms.new_end}'s; in "
            f"between the curve is neither, so the change may be any of {bracket.bad - first.good} commits."
        )
        return self._finding(Answer.SEVERAL, reason, first.good, bracket.bad)

    def _log_at(self, index: int) -> RunLog:
        step = run_of(self._desk.steps, index)
        assert step is not None, f"{index} has not run"
        return self._desk.read(step)

    def _finding(self, answer: Answer, reason: str, good: int, bad: int) -> Finding:
        return finding_of(self._desk, self._case, answer, reason, good=good, bad=bad, notes=self._notes)


def finding_of(
    desk: Desk,
    case: Case,
    answer: Answer,
    reason: str,
    *,
    good: int,
    bad: int,
    notes: Sequence[str] = (),
    probability: float | None = None,
    changes: tuple[Change, ...] = (),
) -> Finding:
    """The answer with the curves on both of its sides."""
    from lossbisect.compare import compare_logs

    sides = [run_of(desk.steps, index) for index in (good, bad)]
    assert sides[0] is not None
    assert sides[1] is not None
    last_good, first_bad = (with_console(desk.read(step), step.record) for step in sides if step is not None)
    is_all = desk.journal.plan.search.find_all
    told = warnings_about(desk.steps, desk.commits, bad, desk.terms, is_every_change=is_all)
    return Finding(
        answer=answer,
        reason=reason,
        good=good,
        bad=bad,
        steps=tuple(desk.steps),
        noise=case.noise,
        judgement=compare_logs(last_good, first_bad, metric=case.metric, tolerance=case.noise),
        warnings=(*desk.commits.notes, *notes, *told),
        probability=probability,
        changes=changes,
    )
