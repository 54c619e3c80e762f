"""The search where runs repeat themselves, or a tolerance says what counts as the same: every verdict is right."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lossbisect.bisect.case import Case, until
from lossbisect.bisect.culprit import Answer, Change, Finding
from lossbisect.bisect.cutting import Cutter
from lossbisect.bisect.desk import Agenda, Desk, Job
from lossbisect.bisect.ends import why_not
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.judging import CurveVerdict, curve
from lossbisect.bisect.known import failed_in_a_row, reverts_of, run_of, unconfirmed_skips, verdicts_of
from lossbisect.bisect.prune import touches
from lossbisect.bisect.search import Bracket, narrow
from lossbisect.bisect.telling import narrowed_text, warnings_about
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.reads import reads_of
from lossbisect.train.types import Outcome

__all__ = ["ExactHunt", "finding_of", "spread"]

SKIPS_BEFORE_DOUBT = 3
"""Failed runs in a row after which the good end is run once more: it may be the machine that fails, not the commits."""
_TAGS = {"lm_loss": "lm loss", "grad_norm": "grad-norm"}
"""What a run's recorded values are called, for the metrics on which a run may be cut."""
_SPARE = 3
"""Once so few candidates are left, free slots run the likely answer again instead of nothing."""


class ExactHunt:
    """One search, from the ends to the answer."""

    def __init__(self, desk: Desk, case: Case, skips_enough: int) -> None:
        self._desk = desk
        self._case = case
        self._skips_enough = skips_enough
        self._last = len(desk.commits.commits) - 1
        self._target = self._last
        self._bracket: Bracket | None = None
        self._notes: tuple[str, ...] = ()
        self._likely = likely_in(desk)

    def finding(self) -> Finding:
        """Search, and put the answer together."""
        desk, case = self._desk, self._case
        ends = case.judge(case.bad)
        if ends.verdict is CommitVerdict.SKIP:
            reason = f"The ends can't be told apart: {ends.reason}."
            return self._finding(Answer.UNDECIDED, reason, -1, self._last)
        if ends.verdict is CommitVerdict.GOOD:
            inner = self._probe()
            if inner is None:
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

    def _probe(self) -> int | None:
        """Run inner commits between ends that are equal; the first one that isn't becomes the bad end."""
        count = self._desk.journal.plan.search.probe
        points = spread(-1, self._last, count)
        self._desk.perform(lambda going, _free: self._missing(Role.PROBE, points, going), self._judge)
        verdicts = verdicts_of(self._desk.steps)
        changed = [index for index in points if verdicts.get(index) in (CommitVerdict.BAD, CommitVerdict.OTHER)]
        if not changed:
            return None
        self._target = changed[0]
        step = run_of(self._desk.steps, self._target)
        assert step is not None
        self._case = replace(self._case, bad=self._desk.read(step))
        commits = self._desk.commits
        note = f"The ends are equal, but {commits.at(self._target).short} in between isn't: the change was taken back."
        self._notes = (note,)
        self._desk.say(EventKind.NOTE, note)
        return self._target

    def _search(self) -> Bracket:
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
        drop = [job for job in going if job.role is Role.SEARCH and not bracket.good < job.index < bracket.bad]
        if len(bracket.candidates) == 1:
            start = self._after_the_search(bracket, going)
        elif len(start) < free and self._desk.slots > 1 and len(bracket.candidates) <= _SPARE:
            start += self._confirmations(bracket, going)
        return Agenda(start=start, drop=drop)

    def _after_the_search(self, bracket: Bracket, going: Sequence[Job]) -> list[Job]:
        """Whether the change was taken back after this commit, and came again; then the commit and its parent again."""
        commits, verdicts = self._desk.commits.commits, verdicts_of(self._desk.steps)
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

    def _missing(self, role: Role, points: Sequence[int], going: Sequence[Job]) -> Agenda:
        jobs = [Job(role=role, index=index) for index in points]
        tried = {step.index for step in self._desk.steps if step.role is role}
        return Agenda(start=[job for job in jobs if job not in going and job.index not in tried])

    def _narrowed(self, running: Sequence[int], jobs: int) -> Bracket:
        verdicts = verdicts_of(self._desk.steps)
        # Neither end's curve is not what is looked for: there the change is still to come.
        sides = {i: CommitVerdict.GOOD if v is CommitVerdict.OTHER else v for i, v in verdicts.items()}
        known = {i: v for i, v in sides.items() if i < self._target}
        return narrow(
            self._target + 1,
            known,
            jobs=jobs,
            running=running,
            likely=self._likely,
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

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:
        if job.role is Role.CANARY:
            return self._case.compare(self._case.good, log)
        if job.role not in (Role.PARENT_AGAIN, Role.CULPRIT_AGAIN):
            return self._case.judge_cut(log) if is_cut else self._case.judge(log)
        first = run_of(self._desk.steps, job.index)
        assert first is not None, f"{job} has no first run"
        whole = self._desk.read(first)
        ran = curve(whole, self._case.metric)
        repeat = self._case.compare(whole, until(log, max(ran)))
        now = self._case.judge(log)
        wanted = self._verdict_at(job.index)
        if repeat.verdict is not CommitVerdict.BAD and now.verdict is wanted:
            return CurveVerdict(verdict=wanted, reason="the same curve again")
        reason = repeat.reason if repeat.verdict is CommitVerdict.BAD else now.reason
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"its second run differs from its first: {reason}")

    def _verdict_at(self, index: int) -> CommitVerdict:
        if index == -1:
            return CommitVerdict.GOOD
        if index == self._last:
            return CommitVerdict.BAD
        return verdicts_of(self._desk.steps)[index]

    def _cutter(self, job: Job, out: Path) -> Cutter | None:
        case = self._case
        tag = _TAGS.get(case.metric)
        if job.role is not Role.SEARCH or tag is None or case.noise.source != "bit-exact":
            return None
        return Cutter(out / "scalars.ndjson", tag, curve(case.good, case.metric), curve(case.bad, case.metric))

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
        if step.record.outcome is not Outcome.FINISHED:
            self._desk.journal.forget(failed, "the good end failed too")
            raise EndpointError(
                f"{len({each.index for each in failed})} commits failed in a row, and now the good end fails too: it "
                "is the machine or the environment, not the commits. They are taken back. " + why_not(self._desk, step)
            )
        if step.verdict is CommitVerdict.BAD:
            raise EndpointError(
                f"The good end {self._desk.commits.good.short} no longer gives the curve that it gave at first: "
                f"{step.reason}. Something outside the code has changed. Start a new bisect."
            )

    def _answer(self, bracket: Bracket) -> Finding:
        desk, commits = self._desk, self._desk.commits
        culprit, doubts = commits.at(bracket.bad), []
        for role, index in ((Role.PARENT_AGAIN, bracket.good), (Role.CULPRIT_AGAIN, bracket.bad)):
            step = desk.journal.find(role, index)
            if step is None or step.verdict is CommitVerdict.SKIP:
                doubts.append(f"{commits.at(index).short}: {step.reason if step else 'its second run failed'}")
        shown = self._case.judge_cut(self._log_at(bracket.bad)).reason
        if doubts:
            reason = f"{culprit.short} looks like the first bad commit, but it is not confirmed: {'; '.join(doubts)}."
            return self._finding(Answer.UNCONFIRMED, reason, bracket.good, bracket.bad)
        if bracket.good >= 0 and self._verdict_at(bracket.good) is CommitVerdict.OTHER:
            return self._after_another_change(bracket, shown)
        return self._finding(
            Answer.FOUND, f"{culprit.short} is the first bad commit: {shown}.", bracket.good, bracket.bad
        )

    def _after_another_change(self, bracket: Bracket, shown: str) -> Finding:
        """The culprit's parent matches neither end: find where the good end's curve was left.

        If nothing but that change lies before the culprit, the culprit leads to the bad end; if the curve in between
        could hide another one, all commits from the first change on are candidates.
        """
        commits = self._desk.commits
        until_ = bracket.good

        def left(running: Sequence[int] = (), jobs: int = 1) -> Bracket:
            verdicts = verdicts_of(self._desk.steps)
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
            reason = f"{name} is the change that leads to the bad end: {shown}. Before it, {start} changed the curve."
            return self._finding(Answer.FOUND, reason, bracket.good, bracket.bad)
        reason = (
            f"{start} leaves the good end's curve and {name} leads to the bad end's; in between the curve is neither, "
            f"so the change may be any of {bracket.bad - first.good} commits."
        )
        return self._finding(Answer.SEVERAL, reason, first.good, bracket.bad)

    def _log_at(self, index: int) -> RunLog:
        step = run_of(self._desk.steps, index)
        assert step is not None, f"{index} has not run"
        return self._desk.read(step)

    def _finding(self, answer: Answer, reason: str, good: int, bad: int) -> Finding:
        return finding_of(self._desk, self._case, answer, reason, good=good, bad=bad, notes=self._notes)


def likely_in(desk: Desk) -> list[int] | None:
    """Commits that change something that an end's run read; None if that isn't known of both."""
    ends = [desk.journal.find(Role.GOOD_END, -1), desk.journal.find(Role.BAD_END, len(desk.commits.commits) - 1)]
    known = [reads for step in ends if step is not None and (reads := reads_of(step.record)) is not None]
    if desk.commits.changes is None or len(known) < len(ends):
        return None
    return [
        index
        for index, changes in enumerate(desk.commits.changes)
        if changes is None or any(touches(changes, reads) for reads in known)
    ]


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
    last_good, first_bad = (desk.read(step) for step in sides if step is not None)
    is_all = desk.journal.plan.search.find_all
    told = warnings_about(desk.steps, desk.commits, bad, is_every_change=is_all)
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


def spread(low: int, high: int, count: int) -> list[int]:
    """At most ``count`` indices between two others, evenly apart."""
    inner = high - low - 1
    return sorted({low + 1 + (2 * n + 1) * inner // (2 * count) for n in range(min(count, inner))}) if inner > 0 else []
