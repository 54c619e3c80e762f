"""The search by what a run shows other than a curve: that it fails as the bad end does, or that it doesn't repeat."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Job
from lossbisect.bisect.judging import CurveVerdict, turned
from lossbisect.bisect.line import REPEATED, LineSearch
from lossbisect.bisect.search import Bracket
from lossbisect.bisect.telling import wavering_texts
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.bisect.weighing import Weigh, run_ends, weigher_of
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
    def _ends(self) -> Sequence[Sequence[Role]]:
        """Runs of the ends in rounds, those of one side by side; all of an end have to say the same of it."""

    def _weigher(self) -> Weigh:
        """Whether a run is good or bad, whichever end is which."""
        weigher = weigher_of(self._desk)
        assert weigher is not None, "curves are judged here"
        return weigher

    def finding(self) -> Finding:
        """Run the ends, search, and put the answer together."""
        self._desk.weigh = self._weigh
        run_ends(self._desk, self._ends(), self._judge, self._refuse)
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

    def _refuse(self, step: BisectStep) -> None:
        """Raise if an end can't be used.

        Raises:
            EndpointError: It shows something else than an end should.
        """
        is_old = step.index == -1
        end = self._terms.old_end if is_old else self._terms.new_end
        name = f"{end} {self._desk.commits.at(step.index).short}"
        if is_old and step.verdict is not CommitVerdict.GOOD:
            raise EndpointError(f"The {name} is none: {step.reason}. Choose an older one.")
        if step.verdict is CommitVerdict.OTHER:
            raise EndpointError(f"The {name} is none: {step.reason}. Choose one that doesn't fail.")

    def _weigh(self, job: Job, record: RunRecord) -> CurveVerdict:
        now = self._weigher()(job, record)
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
        warnings = wavering_texts(steps, commits)
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

    def _ends(self) -> Sequence[Sequence[Role]]:
        if self._is_fix:
            return ((Role.GOOD_END, Role.GOOD_AGAIN), (Role.BAD_END,))
        return ((Role.GOOD_END, Role.BAD_END), (Role.BAD_AGAIN,))


class RepeatHunt(SignHunt):
    """Bad is a commit whose two runs differ."""

    alike = ("Both ends repeat themselves", "Neither end repeats itself")
    rests_on = "Each commit ran twice; it is bad if the two differ in any digit. That two are equal is no proof."

    def _ends(self) -> Sequence[Sequence[Role]]:
        again = Role.BAD_AGAIN if self._is_fix else Role.GOOD_AGAIN
        return ((Role.GOOD_END, Role.BAD_END), (again,))
