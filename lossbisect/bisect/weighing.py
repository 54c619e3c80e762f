"""How a run is weighed whose curves say nothing of what is hunted: by how it ended, or by whether it repeats itself."""

from collections.abc import Callable, Sequence

from lossbisect.bisect.desk import Desk, Job, Judge
from lossbisect.bisect.ends import END_ROLES, run_in_rounds, why_not
from lossbisect.bisect.judging import CurveVerdict
from lossbisect.bisect.options import Regress
from lossbisect.bisect.signs import FailureSign, failure_sign, weigh_crash, weigh_pair
from lossbisect.bisect.twice import again_of
from lossbisect.bisect.types import BisectStep, CommitVerdict, Role
from lossbisect.errors import EndpointError
from lossbisect.train.types import RunRecord

__all__ = ["BY_SIGN", "Weigh", "run_ends", "runs_of_end", "weigher_of"]

type Weigh = Callable[[Job, RunRecord], CurveVerdict]
"""Says whether a run is good or bad, whichever end is which."""

BY_SIGN = (Regress.CRASH, Regress.REPEATABILITY)
"""What is hunted by weighing runs."""


def weigher_of(desk: Desk) -> Weigh | None:
    """How the runs of a stage are weighed; None: their curves or figures are judged."""
    match desk.journal.plan.search.regress:
        case Regress.CRASH:
            return _by_crash(desk)
        case Regress.REPEATABILITY:
            return _by_pair(desk)
        case _:
            return None


def runs_of_end(desk: Desk, *, older: bool) -> list[BisectStep]:
    """The runs of an end as such, in the order in which they ended."""
    index = -1 if older else len(desk.commits.commits) - 1
    return [step for step in desk.steps if step.index == index and step.role in END_ROLES]


def run_ends(
    desk: Desk, rounds: Sequence[Sequence[Role]], judge: Judge, refuse: Callable[[BisectStep], None] = lambda _: None
) -> None:
    """Run the ends, those of one round side by side where there are slots.

    Args:
        desk: Where; its runs are weighed.
        rounds: One after the other: how an end failed says what the runs after it are asked.
        judge: Never asked.
        refuse: Told each run of an end that could be weighed; raises if that end can't be used.

    Raises:
        EndpointError: A run of an end says nothing, or not what another run of that end said.
    """

    def check(step: BisectStep) -> None:
        if step.verdict is CommitVerdict.SKIP:
            raise EndpointError(why_not(desk, step))
        refuse(step)
        is_old = step.index == -1
        other = next((each for each in runs_of_end(desk, older=is_old) if each.verdict is not step.verdict), None)
        if other is not None:
            end = desk.terms.old_end if is_old else desk.terms.new_end
            raise EndpointError(
                f"The {end} {desk.commits.at(step.index).short} isn't the same twice: {other.reason}; then "
                f"{step.reason}. That can't be bisected by single runs."
            )

    run_in_rounds(desk, rounds, judge, check)


def _by_crash(desk: Desk) -> Weigh:
    """Bad is a run that fails as the bad end did first."""

    def weigh(_job: Job, record: RunRecord) -> CurveVerdict:
        known = runs_of_end(desk, older=desk.journal.plan.search.find_fix)
        # Before the end that fails has run, any failure is the one that is looked for.
        wanted = failure_sign(known[0].record if known else record)
        return weigh_crash(record, wanted or FailureSign(kind="", words="", text=""))

    return weigh


def _by_pair(desk: Desk) -> Weigh:
    """Bad is a commit whose two runs differ."""

    def weigh(_job: Job, record: RunRecord) -> CurveVerdict:
        plan, again = desk.journal.plan, again_of(record)
        if again is None:
            return CurveVerdict(verdict=CommitVerdict.SKIP, reason=f"{record.outcome.value}: {record.reason}")
        first, second = (desk.read_record(each) for each in (record, again))
        allowed = max(plan.tolerance or 0.0, plan.search.min_effect or 0.0)
        return weigh_pair(first, second, metric=plan.metric, allowed_rel=allowed)

    return weigh
