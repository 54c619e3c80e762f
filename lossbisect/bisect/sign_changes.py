"""Every stretch of a range where failing, or not repeating itself, begins or ends."""

from dataclasses import replace

from lossbisect.bisect.changes import ChangeHunt
from lossbisect.bisect.culprit import Answer, Change, Finding
from lossbisect.bisect.desk import Job
from lossbisect.bisect.judging import CurveVerdict, turned
from lossbisect.bisect.options import Regress
from lossbisect.bisect.signs import failure_sign
from lossbisect.bisect.telling import wavering_texts
from lossbisect.bisect.types import BisectStep, Role
from lossbisect.bisect.weighing import run_ends, weigher_of
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import RunRecord

__all__ = ["SignChanges"]

_ROUNDS = ((Role.GOOD_END, Role.BAD_END), (Role.GOOD_AGAIN, Role.BAD_AGAIN))
_RESTS_ON = {
    Regress.CRASH: "Runs are alike if all finish, or all fail alike, by the kind of failure and what it says.",
    Regress.REPEATABILITY: "Each commit ran twice; it is bad if the two differ. That two are equal is no proof.",
}


class SignChanges(ChangeHunt):
    """Every change of how runs end, or of whether they repeat themselves."""

    def finding(self) -> Finding:
        """Run the ends twice, search, and list the changes, oldest first; either end may be good or bad."""
        self._desk.weigh = self._weigh
        run_ends(self._desk, _ROUNDS, self._judge)
        return super().finding()

    def _weigh(self, job: Job, record: RunRecord) -> CurveVerdict:
        weigher, options = weigher_of(self._desk), self._desk.journal.plan.search
        assert weigher is not None, "curves are judged here"
        now = weigher(job, record)
        return replace(now, verdict=turned(now.verdict)) if options.find_fix else now

    def _judge(self, job: Job, log: RunLog, *, is_cut: bool) -> CurveVerdict:  # noqa: ARG002
        raise AssertionError(f"{job}: a run is weighed, its curves aren't judged")

    def _is_alike(self, before: BisectStep, after: BisectStep) -> bool:
        if self._desk.journal.plan.search.regress is Regress.REPEATABILITY:
            return before.verdict is after.verdict
        one, other = failure_sign(before.record), failure_sign(after.record)
        return one is other if one is None or other is None else one.is_like(other)

    def _change(self, low: int, high: int) -> Change:
        shown = (self._run_at(low).reason, self._run_at(high).reason)
        return Change(good=low, bad=high, judgement=None, shown=shown)

    def _told(self, answer: Answer, reason: str, changes: tuple[Change, ...]) -> Finding:
        commits, steps = self._desk.commits, self._desk.steps
        return Finding(
            answer=answer,
            reason=reason,
            good=-1,
            bad=self._last,
            steps=tuple(steps),
            noise=None,
            judgement=None,
            warnings=(*commits.notes, *wavering_texts(steps, commits)),
            changes=changes,
            rests_on=_RESTS_ON[self._desk.journal.plan.search.regress],
        )
