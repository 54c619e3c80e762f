"""The search by what a run shows other than a curve: that it fails as the bad end does, or that it doesn't repeat."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Agenda, Job
from lossbisect.bisect.ends import why_not
from lossbisect.bisect.judging import CurveVerdict, turned
from lossbisect.bisect.known import wavering
from lossbisect.bisect.line import REPEATED, LineSearch
from lossbisect.bisect.search import Bracket
from lossbisect.bisect.signs import FailureSign, failure_sign, weigh_crash, weigh_pair
from lossbisect.bisect.twice import again_of
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.compare.wording import counted
from lossbisect.errors import EndpointError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import RunRecord

__all__ = ["CrashHunt", "RepeatHunt", "SignHunt"]

_MOST_NAMED = 3


class SignHunt(LineSearch):
    """One search, from the ends to the answer."""

    rests_on: str
    """By what a run is bad."""
    alike: tuple[str, str]
    """What is to be said if both ends are good, and if both are bad."""

    @property
    def _is_fix(self) -> bool:
        """The older end is the bad one."""
        return self._desk.journal.plan.search.find_fix

    @abstractmethod
    def _ends(self) -> Sequence[Role]:
        """Runs of the ends, in this order; each of them has to say what the one before it said of its end."""

    @abstractmethod
    def _weigh_run(self, record: RunRecord) -> CurveVerdict:
        """Whether a run is good or bad, whichever end is which."""

    def finding(self) -> Finding:
        """Run the ends, search, and put the answer together."""
        self._desk.weigh = self._weigh
        self._run_ends()
        newer = self._desk.journal.find(Role.BAD_END, self._last)
        assert newer is not None, "the newer end has not run"
        if newer.verdict is CommitVerdict.GOOD and self._changed_inside() is None:
            return self._finding(Answer.NO_CULPRIT, f"{self.alike[self._is_fix]}.", -1, self._last)
        bracket = self._search()
        if len(bracket.candidates) > 1:
            self._doubt_the_machine()
            reason = f"One of {len(bracket.candidates)} commits: those before the last one can't be tested."
            return self._finding(Answer.SEVERAL, reason, bracket.good, bracket.bad)
        return self._answer(bracket)

    def judge_without(self, finding: Finding) -> Callable[[RunLog], CurveVerdict]:
        """Never asked: that run is weighed too."""
        return lambda log: self._judge(Job(role=Role.REVERTED, index=finding.bad), log, is_cut=False)

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:  # noqa: ARG002
        raise AssertionError(f"{job}: a run is weighed, its curves aren't judged")

    def _side(self, verdict: CommitVerdict) -> CommitVerdict:
        """A run that shows something else never came so far as to show whether it has what is looked for."""
        return CommitVerdict.SKIP if verdict is CommitVerdict.OTHER else verdict

    def _run_ends(self) -> None:
        places = {Role.GOOD_END: -1, Role.GOOD_AGAIN: -1, Role.BAD_END: self._last, Role.BAD_AGAIN: self._last}
        wanted = [Job(role=role, index=places[role]) for role in self._ends()]

        def agenda(going: Sequence[Job], _free: int) -> Agenda:
            # One after the other: how one end failed says what the runs after it are asked.
            missing = [job for job in wanted if self._desk.journal.find(job.role, job.index) is None]
            return Agenda(start=[] if going else missing[:1])

        for job in wanted:
            if (known := self._desk.journal.find(job.role, job.index)) is not None:
                self._refuse(known)
        self._desk.perform(agenda, self._judge, self._refuse)

    def _refuse(self, step: BisectStep) -> None:
        """Raise if an end can't be used.

        Raises:
            EndpointError: It shows something else than an end should, or not the same twice.
        """
        is_old = step.index == -1
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(self._desk, step))
        if is_old and step.verdict is not CommitVerdict.GOOD:
            name = f"{self._terms.old_end} {self._desk.commits.good.short}"
            raise EndpointError(f"The {name} is none: {step.reason}. Choose an older one.")
        first = self._desk.journal.find(Role.GOOD_END if is_old else Role.BAD_END, step.index)
        if first is not None and first.verdict is not step.verdict:
            end = self._terms.old_end if is_old else self._terms.new_end
            raise EndpointError(
                f"The {end} {self._desk.commits.at(step.index).short} isn't the same twice: {first.reason}; then "
                f"{step.reason}. That can't be bisected by single runs."
            )

    def _weigh(self, job: Job, record: RunRecord) -> CurveVerdict:
        now = self._weigh_run(record)
        if self._is_fix:
            now = replace(now, verdict=turned(now.verdict))
        if job.role not in REPEATED or now.verdict is self._verdict_at(job.index):
            return now
        return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"it isn't what its first run was: {now.reason}")

    def _answer(self, bracket: Bracket) -> Finding:
        name, doubts = self._desk.commits.at(bracket.bad).short, self._doubts(bracket)
        if doubts:
            reason = f"{name} looks like the {self._terms.first}, but it is not confirmed: {'; '.join(doubts)}."
            return self._finding(Answer.UNCONFIRMED, reason, bracket.good, bracket.bad)
        shown = next(step.reason for step in reversed(self._desk.steps) if step.index == bracket.bad)
        return self._finding(Answer.FOUND, f"{name} is the {self._terms.first}: {shown}.", bracket.good, bracket.bad)

    def _finding(self, answer: Answer, reason: str, good: int, bad: int) -> Finding:
        steps, commits = self._desk.steps, self._desk.commits
        warnings = [
            f"{commits.at(step.index).short} failed once ({step.reason}) and ran the next time: it isn't determined."
            for step in wavering(steps)
            if step.verdict is not CommitVerdict.GOOD
        ]
        others = sorted({step.index for step in steps if step.verdict is CommitVerdict.OTHER})
        if others:
            names = ", ".join(commits.at(index).short for index in others[:_MOST_NAMED])
            warnings.append(
                f"{counted(len(others), 'commit')} can't be told, since something else is wrong there ({names})."
            )
        return Finding(
            answer=answer,
            reason=reason,
            good=good,
            bad=bad,
            steps=tuple(steps),
            noise=None,
            judgement=None,
            warnings=(*commits.notes, *warnings),
            rests_on=self.rests_on,
        )


class CrashHunt(SignHunt):
    """Bad is a run that fails as the bad end does."""

    alike = ("Both ends finish", "Both ends fail alike")
    rests_on = "A run is bad if it fails as the bad end does, by the kind of failure and what it says."

    def _ends(self) -> Sequence[Role]:
        if self._is_fix:
            return (Role.GOOD_END, Role.GOOD_AGAIN, Role.BAD_END)
        return (Role.GOOD_END, Role.BAD_END, Role.BAD_AGAIN)

    def _weigh_run(self, record: RunRecord) -> CurveVerdict:
        role, index = (Role.GOOD_END, -1) if self._is_fix else (Role.BAD_END, self._last)
        known = self._desk.journal.find(role, index)
        # Before the end that fails has run, any failure is the one that is looked for.
        wanted = failure_sign(known.record if known is not None else record)
        return weigh_crash(record, wanted or FailureSign(kind="", words="", text=""))


class RepeatHunt(SignHunt):
    """Bad is a commit whose two runs differ."""

    alike = ("Both ends repeat themselves", "Neither end repeats itself")
    rests_on = "Each commit ran twice; it is bad if the two differ in any digit. That two are equal is no proof."

    def _ends(self) -> Sequence[Role]:
        again = Role.BAD_AGAIN if self._is_fix else Role.GOOD_AGAIN
        return (Role.GOOD_END, Role.BAD_END, again)

    def _weigh_run(self, record: RunRecord) -> CurveVerdict:
        plan, again = self._desk.journal.plan, again_of(record)
        if again is None:
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
        first, second = (self._desk.read_record(each) for each in (record, again))
        allowed = max(plan.tolerance or 0.0, plan.search.min_effect or 0.0)
        return weigh_pair(first, second, metric=plan.metric, allowed_rel=allowed)
