"""How far can a pin be moved? The newest commit that still gives today's loss, and the first that doesn't."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossbisect.bisect.codebase import CodeBase, open_codebase
from lossbisect.bisect.desk import Job
from lossbisect.bisect.judging import CurveVerdict, judge_curves, measured_noise, missing_iterations
from lossbisect.bisect.names import resolve
from lossbisect.bisect.repository import ask, is_ancestor, where
from lossbisect.bisect.sign_hunt import SignHunt
from lossbisect.bisect.signs import failure_sign
from lossbisect.bisect.types import CommitVerdict, Role
from lossbisect.bisect.weighing import Weigh, runs_of_end
from lossbisect.cause import Cause
from lossbisect.compare.types import NoiseFloor
from lossbisect.errors import GitError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome, RunRecord

if TYPE_CHECKING:
    from lossbisect.bisect.culprit import BisectResult
    from lossbisect.bisect.options import SearchOptions

__all__ = ["AdvanceHunt", "advance", "tip_of"]

_BRANCHES = ("origin/main", "origin/dev", "origin/HEAD")


def advance(
    repo: Path, to: str | None = None, *, search: "SearchOptions | None" = None, **options: Any
) -> "BisectResult":
    """Search for the newest commit of Megatron-LM that gives the loss of the commit in use today.

    Args:
        repo: A Bridge checkout, from whose pin the search starts, or a Megatron-LM one, from whose HEAD it does.
        to: The newest commit that is asked about, by any name that `bisect.names` knows; None: `tip_of`.
        search: What may be skipped, and what commits are run with.
        options: As for `bisect_range`.

    Returns:
        The good end is today's commit. ``finding.good`` is the newest commit that still gives its loss, ``finding.bad``
        the first that doesn't: its loss differs, or it fails where the newest commit fails too. The answer is "no
        culprit" if the newest commit gives that loss.

    Raises:
        GitError: There is no such commit, or it isn't newer.
        LossbisectError: As `bisect_range`.
    """
    from lossbisect.bisect.options import SearchOptions
    from lossbisect.bisect.session import bisect_range

    with open_codebase(repo, allow_dirty=bool(options.get("allow_dirty"))) as code:
        start = resolve(code, "bridge:HEAD") if code.bridge is not None else code.mcore_head
        end = resolve(code, to) if to is not None else tip_of(code, start)
        if start == end:
            raise GitError(f"{where(code.mcore)}: {end[:10]} is what is in use already. Fetch, or name another --to.")
        if not is_ancestor(code.mcore, start, end):
            raise GitError(
                f"{where(code.mcore)}: {to or end[:10]} doesn't stand on the commit in use, {start[:10]}. Name a --to "
                "that does."
            )
    asked = replace(search or SearchOptions(), advance=True, revert=False)
    return bisect_range(repo, start, end, search=asked, **options)


def tip_of(code: CodeBase, start: str) -> str:
    """The newest commit of the first of origin's branches main and dev that stands on a commit; full SHAs.

    Raises:
        GitError: None of them does.
    """
    for branch in _BRANCHES:
        found = ask(code.mcore, "rev-parse", "--verify", "--quiet", f"refs/remotes/{branch}^{{commit}}", allowed=(0, 1))
        if found and is_ancestor(code.mcore, start, found):
            return found
    raise GitError(
        f"{where(code.mcore)}: none of {', '.join(_BRANCHES)} stands on the commit in use, {start[:10]}. Name the "
        "newest commit to ask about: --to COMMIT"
    )


class AdvanceHunt(SignHunt):
    """Good is a commit with the good end's curve. Where the newest commit fails, one that fails is bad, else a skip."""

    alike = ("The newest commit still gives the same loss", "")
    rests_on = ""

    def _ends(self) -> Sequence[Sequence[Role]]:
        return ((Role.GOOD_END, Role.GOOD_AGAIN), (Role.BAD_END,))

    def _weigher(self) -> Weigh:
        return self._weigh_run

    def _weigh_run(self, job: Job, record: RunRecord) -> CurveVerdict:
        metric, in_use = self._desk.journal.plan.metric, runs_of_end(self._desk, older=True)
        if record.outcome is not Outcome.FINISHED:
            # Whatever stops one commit alone is searched around; what stops the newest too has come to stay.
            is_own = failure_sign(record) is not None and record.cause is not Cause.UNKNOWN
            newest = self._desk.journal.find(Role.BAD_END, self._last)
            is_last = job.role is Role.BAD_END or (newest is not None and newest.record.outcome is Outcome.FAILED)
            verdict = CommitVerdict.BAD if is_own and is_last else CommitVerdict.SKIP
            return CurveVerdict(verdict=verdict, reason=f"{record.outcome.value}: {record.reason}")
        log = self._desk.read_record(record)
        good = self._desk.read(in_use[0]) if in_use else log
        if gap := missing_iterations(good, log, metric=metric):
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=gap)
        return judge_curves(good, log, metric=metric, noise=self._floor(good, log))

    def _floor(self, good: RunLog, log: RunLog) -> NoiseFloor:
        """The noise floor: the one asked for, or what two runs of the good end show; before that any run will do."""
        plan = self._desk.journal.plan
        if plan.tolerance is not None:
            return NoiseFloor(source="rtol", surely_noise_rel=plan.tolerance, surely_real_rel=plan.tolerance)
        in_use = runs_of_end(self._desk, older=True)
        again = self._desk.read(in_use[1]) if len(in_use) > 1 else log
        measured = measured_noise(good, again, metric=plan.metric)
        return measured or NoiseFloor(source="bit-exact", surely_noise_rel=0.0, surely_real_rel=0.0)
