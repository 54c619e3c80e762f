"""From two curves to good, bad or skip. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lossbisect.bisect.types import CommitVerdict
from lossbisect.compare.types import Difference, NoiseFloor
from lossbisect.compare.wording import metric_name, relative_text
from lossbisect.parsers.runlog import RunLog

__all__ = ["CurveVerdict", "curve", "judge_curves", "measured_noise", "missing_iterations", "turned"]

NOISE_FACTOR = 2.0
"""Two repeats show one difference; the next repeat exceeds it every second time, twice as much rarely."""
REAL_FACTOR = 5.0
"""From here on a difference is no repeat's; between the two factors nothing is claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurveVerdict:
    """What a curve says about its commit.

    Attributes:
        verdict: Good, bad, other or skip.
        reason: Why, in one sentence.
        is_bad_curve: A curve that isn't the good end's is the bad end's; None where that wasn't asked.
    """

    verdict: CommitVerdict
    reason: str
    is_bad_curve: bool | None = None


def turned(verdict: CommitVerdict) -> CommitVerdict:
    """The verdict where the older end is the broken one."""
    sides = {CommitVerdict.GOOD: CommitVerdict.BAD, CommitVerdict.BAD: CommitVerdict.GOOD}
    return sides.get(verdict, verdict)


def judge_curves(baseline: RunLog, candidate: RunLog, *, metric: str, noise: NoiseFloor) -> CurveVerdict:
    """Good if the candidate's curve is the baseline's, bad if it surely isn't, skip where that can't be said.

    Only the metric decides: a commit that changes another one (how a gradient norm is logged, say) is good for this
    search. A candidate that lacks iterations is skipped: it says nothing about the loss. One that goes NaN where the
    baseline has a number is bad.
    """
    from lossbisect.compare.align import align
    from lossbisect.compare.stats import difference

    if gap := missing_iterations(baseline, candidate, metric=metric):
        return _skip(gap)
    ours, theirs = curve(baseline, metric), curve(candidate, metric)
    if broken := [i for i, value in ours.items() if math.isfinite(value) and not math.isfinite(theirs[i])]:
        first = broken[0]
        return _bad(
            f"{metric_name(metric)} is {theirs[first]} at iteration {first}, where it should be {ours[first]!r}"
        )
    name = metric_name(metric)
    found = difference(align(baseline, candidate, metric), noise)
    if found.is_identical:
        return _good(f"{name} is equal in all {len(ours)} iterations")
    since = found.first_difference if noise.surely_real_rel == 0 else found.first_divergent
    if since is not None and since in found.only_baseline_missing:
        return _bad(f"{name} is {theirs[since]!r} at iteration {since}, where it was {ours[since]}")
    if since is not None:
        return _bad(f"{name} differs from iteration {since} on, by up to {_size(found)}")
    if found.first_doubtful is None:
        return _good(f"{name} is within noise, up to {_size(found)}")
    return _skip(f"within noise: {name} differs by up to {_size(found)}, too much for noise and too little to be sure")


def missing_iterations(baseline: RunLog, candidate: RunLog, *, metric: str) -> str | None:
    """What the candidate lacks of the baseline's iterations, as a clause; None if it lacks nothing."""
    ours, theirs = curve(baseline, metric), curve(candidate, metric)
    if not ours:
        return f"there is no {metric_name(metric)} in it"
    if missing := [iteration for iteration in ours if iteration not in theirs]:
        lack = f"{len(missing)} of {len(ours)} iterations have no {metric_name(metric)}"
        return f"{lack}, the first is iteration {missing[0]}"
    return None


def measured_noise(first: RunLog, again: RunLog, *, metric: str) -> NoiseFloor | None:
    """The noise floor that two runs of one commit show: 0 if they are equal to the last bit.

    None if they can't be laid over each other: one lacks iterations, or went NaN where the other didn't.
    """
    one, other = curve(first, metric), curve(again, metric)
    if one.keys() != other.keys():
        return None
    largest = 0.0
    for iteration, value in one.items():
        repeat = other[iteration]
        if value == repeat or (math.isnan(value) and math.isnan(repeat)):
            continue
        if not (math.isfinite(value) and math.isfinite(repeat)):
            return None
        largest = max(largest, abs(repeat - value) / max(abs(value), abs(repeat)))
    if largest == 0:
        return NoiseFloor(source="bit-exact", surely_noise_rel=0.0, surely_real_rel=0.0)
    return NoiseFloor(source="repeats", surely_noise_rel=NOISE_FACTOR * largest, surely_real_rel=REAL_FACTOR * largest)


def curve(log: RunLog, metric: str) -> Mapping[int, float]:
    """The values of a metric by iteration, those that weren't logged left out; a later attempt's values win."""
    if metric not in log.iterations.columns:
        return {}
    rows = log.iterations.select("iteration", metric).drop_nulls().iter_rows()
    return {int(iteration): float(value) for iteration, value in rows}


def _size(found: Difference) -> str:
    return f"{relative_text(found.largest_rel or 0.0)} relative (iteration {found.largest_at})"


def _good(reason: str) -> CurveVerdict:
    return CurveVerdict(verdict=CommitVerdict.GOOD, reason=reason)


def _bad(reason: str) -> CurveVerdict:
    return CurveVerdict(verdict=CommitVerdict.BAD, reason=reason)


def _skip(reason: str) -> CurveVerdict:
    return CurveVerdict(verdict=CommitVerdict.SKIP, reason=reason)
