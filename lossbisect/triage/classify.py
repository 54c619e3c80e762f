"""From curves to what became of a commit. Pure.

Two facts are kept apart: whether the *environment* moved (the reference commit, run again today, against its recorded
curve) and whether the *commit* moved the loss (both run today). Only the second is ever a commit's fault.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from lossbisect.compare.wording import relative_text
from lossbisect.triage.tip import last_value, tip_test
from lossbisect.triage.types import Curve, Kind

__all__ = ["REAL_FACTOR", "Change", "Distance", "Evidence", "Finding", "change_of", "distance", "kind_of", "spread"]

NOISE_FACTOR = 2.0
"""Two repeats show one difference; the next exceeds it every second time, twice as much rarely."""
REAL_FACTOR = 5.0
"""From here on a difference is no repeat's; between the two factors nothing is claimed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """How far two curves lie apart.

    Attributes:
        largest_rel: Largest relative difference; infinite where one has a number and the other hasn't.
        since: First iteration that differs; None if none does.
        at: Iteration of the largest difference.
    """

    largest_rel: float
    since: int | None
    at: int | None


class Change:
    """Whether two curves are the same, as far as the noise lets it be said."""

    SAME = "same"
    REAL = "real"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What ran.

    Attributes:
        recorded: The reference commit's curve as it was recorded; empty if there is no record.
        reference: Its runs of today.
        tip: Today's runs of the commit in question, at least one.
        noise_rel: Largest difference between repeats that the history knows of.
        tolerance: Relative difference that counts as none.
        before: Last values of earlier runs at the reference's level, one a commit.
    """

    recorded: Curve
    reference: Sequence[Curve]
    tip: Sequence[Curve]
    noise_rel: float
    tolerance: float
    before: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What the curves say.

    Attributes:
        kind: OK, REGRESSION, IMPROVEMENT, FLAKY, ENVIRONMENT or UNDECIDED.
        reason: One sentence.
        noise_rel: Largest difference between repeats that is known now.
        is_drifted: The environment gives other numbers than it did, whatever the commit does.
    """

    kind: Kind
    reason: str
    noise_rel: float
    is_drifted: bool = False


def distance(one: Curve, other: Curve) -> Distance:
    """How far two curves lie apart; two NaNs at one iteration are equal."""
    largest, since, at = 0.0, None, None
    for iteration in sorted({*one, *other}):
        a, b = one.get(iteration), other.get(iteration)
        if a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b)):
            continue
        since = iteration if since is None else since
        finite = a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
        apart = abs(a - b) / max(abs(a), abs(b)) if finite and a is not None and b is not None else math.inf
        if at is None or apart > largest:
            largest, at = apart, iteration
    return Distance(largest_rel=largest, since=since, at=at)


def spread(*sides: Sequence[Curve]) -> float:
    """Largest relative difference between any two runs of one side."""
    return max(
        (distance(one, other).largest_rel for side in sides for one, other in combinations(side, 2)), default=0.0
    )


def change_of(one: Curve, other: Curve, noise_rel: float, tolerance: float) -> str:
    """Whether two curves are the same: one of `Change`.

    Args:
        one: A curve.
        other: Another one.
        noise_rel: Largest difference between repeats; 0: runs repeat themselves bit for bit, so any difference is real.
        tolerance: Relative difference that counts as none, whatever the noise.
    """
    apart = distance(one, other).largest_rel
    if apart <= max(NOISE_FACTOR * noise_rel, tolerance):
        return Change.SAME
    return Change.REAL if apart > max(REAL_FACTOR * noise_rel, tolerance) else Change.DOUBTFUL


def kind_of(evidence: Evidence) -> Finding:
    """What became of the commit.

    Without runs of the reference commit of today only OK and UNDECIDED can be said: no record alone blames anybody.
    """
    measured = spread(evidence.reference, evidence.tip)
    noise = max(measured, evidence.noise_rel)
    tip = evidence.tip[0]
    if not evidence.reference:
        same = change_of(evidence.recorded, tip, noise, evidence.tolerance) == Change.SAME
        kind = Kind.OK if same else Kind.UNDECIDED
        return Finding(kind=kind, reason=_apart(evidence.recorded, tip, noise), noise_rel=noise)
    drift = _drift(evidence, noise)
    now = evidence.reference[0]
    changes = {change_of(now, run, noise, evidence.tolerance) for run in evidence.tip}
    known = max(NOISE_FACTOR * evidence.noise_rel, evidence.tolerance)
    if math.isinf(noise) or (measured > known and changes != {Change.REAL}):
        return Finding(
            kind=Kind.FLAKY,
            reason=f"the same commit gives other numbers each time: its runs differ by up to {_size(measured)}",
            noise_rel=noise,
        )
    if changes != {Change.REAL} and (found := _by_history(evidence, noise)) is not None:
        return found
    if changes == {Change.SAME}:
        if drift == Change.REAL:
            moved = _largest(evidence.recorded, now)
            reason = f"the reference commit gives other numbers today, by up to {moved}, and the new commit the same"
            return Finding(kind=Kind.ENVIRONMENT, reason=reason, noise_rel=noise, is_drifted=True)
        return Finding(kind=Kind.OK, reason=_apart(now, tip, noise), noise_rel=noise)
    if changes == {Change.REAL}:
        reason = _apart(now, tip, noise)
        return Finding(kind=_direction(now, tip), reason=reason, noise_rel=noise, is_drifted=drift == Change.REAL)
    return Finding(
        kind=Kind.UNDECIDED,
        reason=f"{_apart(now, tip, noise)}: too much for noise ({_size(noise)}) and too little to be sure",
        noise_rel=noise,
        is_drifted=drift == Change.REAL,
    )


def _by_history(evidence: Evidence, noise: float) -> Finding | None:
    """A difference that noise may hide, decided by the repeats of today against the level of all runs before.

    Only if the reference's own runs lie at that level today: otherwise it may be the environment.
    """
    tip, reference = (
        tip_test(evidence.before, [last_value(run) for run in runs]) for runs in (evidence.tip, evidence.reference)
    )
    if tip is None or reference is None or not tip.scale or not tip.is_alarm or reference.is_alarm:
        return None
    if abs(tip.shift) <= evidence.tolerance * abs(tip.level):
        return None
    reason = (
        f"the last values of {tip.newest} runs lie {tip.shift:+.2g} from the level of {tip.before} runs before, beyond "
        f"the {tip.limit:.2g} that noise explains (false alarms: {tip.false_alarm_rate:.0%} a look)"
    )
    return Finding(kind=Kind.IMPROVEMENT if tip.shift < 0 else Kind.REGRESSION, reason=reason, noise_rel=noise)


def _drift(evidence: Evidence, noise: float) -> str:
    if not evidence.recorded:
        return Change.SAME
    return change_of(evidence.recorded, evidence.reference[0], noise, evidence.tolerance)


def _direction(before: Curve, after: Curve) -> Kind:
    """Lower in every iteration of the second half is an improvement; all else that is sure is a regression."""
    shared = sorted(before.keys() & after.keys())
    half = shared[len(shared) // 2 :]
    is_lower = bool(half) and all(math.isfinite(after[i]) and after[i] < before[i] for i in half)
    return Kind.IMPROVEMENT if is_lower else Kind.REGRESSION


def _apart(one: Curve, other: Curve, noise: float) -> str:
    found = distance(one, other)
    if found.since is None:
        return f"equal in all {len(one)} iterations"
    broken = next(
        (i for i in sorted(other) if not math.isfinite(other[i]) and math.isfinite(one.get(i, math.nan))), None
    )
    if broken is not None:
        return f"{other[broken]} at iteration {broken}, where it should be {one[broken]!r}"
    if math.isinf(found.largest_rel):
        return f"the iterations differ: one has {len(one)} with a value, the other {len(other)}"
    if found.largest_rel <= NOISE_FACTOR * noise:
        return f"within the known noise, up to {_largest(one, other)}"
    return f"differs from iteration {found.since} on, by up to {_largest(one, other)} (iteration {found.at})"


def _largest(one: Curve, other: Curve) -> str:
    return _size(distance(one, other).largest_rel)


def _size(relative: float) -> str:
    return "a value that is no number" if math.isinf(relative) else f"{relative_text(relative)} relative"
