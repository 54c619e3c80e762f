"""Where the change is, if runs may be wrong: a probability for each commit and for "no change at all". Pure.

A run's reading is a number: 0 or 1 (passed or failed), or a score. Readings before the change have one distribution,
those from it on another. Neither is given: for each place of the change the likelihood is averaged over what is not
known, in closed form, so that the noise is learnt from all runs and not from the ends alone.

- Verdicts (0 or 1): wrong with one unknown rate on both sides, below one half.
- Scores: normal with one unknown width, both means unknown; the distance between the means, in units of the width, has
  a moment prior: the square of the distance times a normal density, for distances above 0 only (Johnson and Rossell
  2010, Journal of the Royal Statistical Society B 72:143). A normal prior, as in the Bayesian t test of Gönen et al.
  2005 (American Statistician 59:252), calls a distance near 0 likely, so that equal ends hardly speak against a change.

Between two tested commits nothing tells the places apart, so the belief is a few segments however long the range is.
Before any run every commit is as likely as another. "No change" is one more place, after the last commit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import erfc, exp, log, log1p, pi, sqrt
from statistics import NormalDist

from lossbisect.bisect.choose import Segment

__all__ = ["Belief", "Evidence", "Reading", "believe"]


def _rate_prior(number: int, highest: float) -> tuple[tuple[float, float], ...]:
    """Equally likely rates from 0 to the highest, the lower ones denser: half of them are below a quarter of it."""
    rates = [highest * ((place + 0.5) / number) ** 2 for place in range(number)]
    return tuple((rate, 1 / number) for rate in rates)


NO_CHANGE_PRIOR = 0.2
"""Whoever bisects has seen a difference, but a flake is no rare cause of one."""
_RATES = _rate_prior(24, 0.45)
"""Error rates with their prior probabilities. A run that is wrong every second time says nothing, whatever it says."""
_SEPARATION_PRIOR = 3.5
"""Scale of the prior of the distance between the means, in squared noise widths: most likely is 2.6 widths."""
_EQUAL_WIDTH = 1e-9
"""Noise width that is assumed at least, relative to the spread of all readings: equal readings prove no zero noise."""
_MOST_LIKELY_ERROR = 0.45
_NEVER = 1e-12
"""Probability below which nothing is told apart: a difference of two large numbers is no exact zero."""


class Evidence(StrEnum):
    """What kind of numbers the readings are."""

    VERDICT = "verdict"
    SCORE = "score"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What one run has shown.

    Attributes:
        index: The commit; -1 is the good end.
        value: 0 like the good end or 1 like the bad end; or a score, larger at the bad end than at the good one.
    """

    index: int
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Belief:
    """Where the change may be.

    Attributes:
        segments: Places between two tested commits, ascending; the last one (``start`` = number of commits) is "no
            change". Masses sum to 1.
        error: Chance that a single run speaks for the wrong side, as far as it is known.
        separation: Distance between the means in noise widths, at the likeliest place; None for verdicts.
    """

    segments: tuple[Segment, ...]
    error: float
    separation: float | None

    @property
    def no_change(self) -> float:
        """Probability that there is no change."""
        return self.segments[-1].mass

    @property
    def likeliest(self) -> Segment:
        """The segment with the most mass; "no change" is one too."""
        return max(self.segments, key=lambda segment: segment.mass)

    def candidates(self, confidence: float) -> tuple[Segment, ...]:
        """The fewest segments that hold this much of the probability, "no change" left out, ascending."""
        ranked = sorted(self.segments[:-1], key=lambda each: -each.mass / (each.stop - each.start))
        wanted = confidence * (1 - self.no_change)
        chosen, held = [], 0.0
        for segment in ranked:
            if held >= wanted:
                break
            chosen.append(segment)
            held += segment.mass
        return tuple(sorted(chosen, key=lambda segment: segment.start))


def believe(
    count: int, readings: Sequence[Reading], evidence: Evidence, *, no_change_prior: float = NO_CHANGE_PRIOR
) -> Belief:
    """The posterior over the places of the change.

    Args:
        count: Number of commits after the good end, the bad end included.
        readings: What the runs have shown, in any order; at least one.
        evidence: What kind of numbers they are.
        no_change_prior: Probability of "no change" before any run.
    """
    tested = sorted({reading.index for reading in readings})
    ordered = sorted(readings, key=lambda reading: reading.index)
    likelihood = _verdicts(ordered) if evidence is Evidence.VERDICT else _scores(ordered)
    # A change in (a, b] leaves the readings up to a on the good side; before the first test nothing does.
    ends = sorted({*tested, -1, count - 1})
    bounds = [(low + 1, high + 1) for low, high in pairwise(ends) if high < count]
    logs, weights, place = [], [], 0
    for start, stop in bounds:
        while place < len(ordered) and ordered[place].index < start:
            place += 1
        logs.append(log((1 - no_change_prior) * (stop - start) / count))
        weights.append(likelihood(place))
    logs.append(log(no_change_prior))
    weights.append(likelihood(len(ordered)))
    joint = [a + b for a, b in zip(logs, weights, strict=True)]
    top = max(joint)
    masses = [exp(value - top) for value in joint]
    total = sum(masses)
    segments = [
        Segment(start=start, stop=stop, mass=mass / total)
        for (start, stop), mass in zip([*bounds, (count, count + 1)], masses, strict=True)
    ]
    best = max(segments[:-1], key=lambda segment: segment.mass)
    split = sum(reading.index < best.start for reading in ordered)
    error, separation = (_error_rate if evidence is Evidence.VERDICT else _overlap)(ordered, split)
    return Belief(segments=tuple(segments), error=error, separation=separation)


def _verdicts(ordered: Sequence[Reading]) -> Callable[[int], float]:
    """Log likelihood of the readings if those before a place are good ones and the others bad ones."""
    number, fails = len(ordered), [0]
    for reading in ordered:
        fails.append(fails[-1] + (reading.value > 0.5))
    known: dict[int, float] = {}

    def at(split: int) -> float:
        errors = fails[split] + (number - split) - (fails[-1] - fails[split])
        if errors not in known:
            known[errors] = log(sum(_chances(errors, number)))
        return known[errors]

    return at


def _chances(errors: int, number: int) -> list[float]:
    """Joint probability of so many errors and each error rate."""
    return [chance * rate**errors * (1 - rate) ** (number - errors) for rate, chance in _RATES]


def _error_rate(ordered: Sequence[Reading], split: int) -> tuple[float, None]:
    errors = sum((reading.value > 0.5) == (place < split) for place, reading in enumerate(ordered))
    chances = _chances(errors, len(ordered))
    return sum(rate * chance for (rate, _), chance in zip(_RATES, chances, strict=True)) / sum(chances), None


def _scores(ordered: Sequence[Reading]) -> Callable[[int], float]:
    """Log of the Bayes factor of two means split at a place, against one mean for all readings."""
    values = _centred(ordered)
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    number, squares = len(values), sum(value * value for value in values)
    freedom, total = number - 1, squares * (1 + _EQUAL_WIDTH) + _tiny(squares)

    def at(split: int) -> float:
        if split in (0, number):
            return 0.0
        size = split * (number - split) / number
        distance = (sums[-1] - sums[split]) / (number - split) - sums[split] / split
        between = min(squares, size * distance**2)
        spread = 1 + size * _SEPARATION_PRIOR
        rest = total - between + between / spread
        # Given the readings, a normal prior makes the distance Student's t; the moment prior weighs it by its square.
        position = distance * size * sqrt(_SEPARATION_PRIOR / spread * freedom / rest)
        normal = 0.5 * (freedom * log(total / rest) - log(spread))
        return normal + log(2 / spread) + log(_positive_square(position, freedom))

    return at


def _positive_square(position: float, freedom: int) -> float:
    """Mean of the square of what is above 0, of Student's t around a position.

    The part on the other side of 0 is taken as a normal one's at the same quantile (Wallace 1959, Annals of
    Mathematical Statistics 30:1121).
    """
    quantile = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(position**2 / freedom))
    aside = (1 + quantile**2) * erfc(quantile / sqrt(2)) / 2 - quantile * exp(-(quantile**2) / 2) / sqrt(2 * pi)
    aside = max(aside, _NEVER)
    return 1 + position**2 - aside if position > 0 else aside


def _overlap(ordered: Sequence[Reading], split: int) -> tuple[float, float]:
    values = _centred(ordered)
    good, bad = values[:split], values[split:]
    if not good or not bad:
        return _MOST_LIKELY_ERROR, 0.0
    means = [sum(side) / len(side) for side in (good, bad)]
    within = sum((v - m) ** 2 for side, m in zip((good, bad), means, strict=True) for v in side)
    # One width of prior: two readings that happen to be close must not pass as noiseless.
    freedom = max(1, len(values) - 2)
    width = sqrt(within / freedom) if within > 0 else 0.0
    distance = abs(means[1] - means[0])
    separation = distance / width if width > 0 else float("inf")
    error = NormalDist().cdf(-separation / 2) if width > 0 else 0.0
    return min(_MOST_LIKELY_ERROR, max(error, 0.5 / (len(values) + 1) ** 2)), separation


def _centred(ordered: Iterable[Reading]) -> list[float]:
    values = [reading.value for reading in ordered]
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _tiny(squares: float) -> float:
    return 1e-300 if squares == 0 else 0.0
