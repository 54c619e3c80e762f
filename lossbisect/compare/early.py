"""Whether a run that is still going on is already sure: for a bisect that stops its runs early. Pure.

A run is surely bad by the very test of ``lossbisect watch``, whose false alarms don't grow with the number of looks. It
is surely good once it has come past the iteration at which a bad run is known to show, and every row so far is surely
noise; before that, rows that agree prove nothing.
"""

from dataclasses import dataclass
from enum import StrEnum

from lossbisect.compare.align import align
from lossbisect.compare.noise import default_noise
from lossbisect.compare.stats import difference
from lossbisect.compare.types import NoiseFloor
from lossbisect.compare.verdict import ITERATIONS_FOR_SAME
from lossbisect.compare.watching import Watch
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import RunLog

__all__ = ["Early", "EarlyState", "early_state"]

_ROWS_PAST_ONSET = 5
"""Rows from the onset on that must be noise: a bad run's onset may come a few rows later than the bad end's did."""


class EarlyState(StrEnum):
    """What the rows so far say."""

    BAD = "surely bad"
    GOOD = "surely good"
    OPEN = "not sure yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Early:
    """The state of a run that goes on.

    Attributes:
        state: What its rows so far say.
        reason: One clause.
        iteration: The last iteration that both have, 0 if none.
    """

    state: EarlyState
    reason: str
    iteration: int


def early_state(
    good: RunLog,
    so_far: RunLog,
    *,
    metric: str = "lm_loss",
    noise: NoiseFloor | None = None,
    repeats: tuple[RunLog, ...] = (),
    bad_onset: int | None = None,
) -> Early:
    """Whether the rows of a run so far make it surely bad or surely good.

    Args:
        good: The good end's curve.
        so_far: The run, with the rows that it has printed.
        metric: Column to judge by.
        noise: How far equal runs may lie apart; None: what the repeats show, or the number format explains.
        repeats: Further runs of the good end.
        bad_onset: First divergent iteration of the bad end; None: unknown, so no run is surely good before its end.

    Raises:
        AlignmentError: The good end's curve doesn't have the metric.
    """
    watch = Watch(good, metric=metric, tolerance=noise, repeats=repeats)
    seen = watch.update(so_far)
    if seen.alarm is not None:
        return Early(state=EarlyState.BAD, reason=seen.alarm, iteration=seen.last)
    if bad_onset is None or not seen.last:
        return Early(state=EarlyState.OPEN, reason="nothing speaks against it so far", iteration=seen.last)
    try:
        curves = align(good, so_far, metric)
    except AlignmentError as error:
        return Early(state=EarlyState.OPEN, reason=str(error), iteration=seen.last)
    found = difference(curves, watch.floor or noise or default_noise(good, so_far))
    past = curves.frame.filter(curves.frame["iteration"] >= bad_onset).height
    if past < _ROWS_PAST_ONSET or seen.last < ITERATIONS_FOR_SAME:
        reason = f"{past} rows from iteration {bad_onset} on, where the bad end shows, of {_ROWS_PAST_ONSET} needed"
        return Early(state=EarlyState.OPEN, reason=reason, iteration=seen.last)
    if found.first_doubtful is not None:
        reason = f"not surely noise at iteration {found.first_doubtful}"
        return Early(state=EarlyState.OPEN, reason=reason, iteration=seen.last)
    reason = f"every row is noise, and the bad end shows from iteration {bad_onset} on"
    return Early(state=EarlyState.GOOD, reason=reason, iteration=seen.last)
