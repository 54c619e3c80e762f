"""Which commits to run next. Pure: a belief about where the change is in, indices out.

A run at an index tells on which side of it the change lies, with some chance of being wrong. Indices are chosen for
the information that their runs are expected to give, on top of those that are still running (mutual information; for a
single run without noise this is halving, for k at once cutting into k + 1). Runs that have yet to tell are taken to be
wrong independently of each other.

An index that can't be tested is no evidence, and untestable commits come in runs (a missing import lasts until it is
repaired). So information is weighed by the chance that a run succeeds, which falls off near an untestable commit over
a distance that doubles with each of them: one costs a step aside, a long run of them is jumped over.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import log2

__all__ = ["Segment", "choose"]

_WORTH_BITS = 1e-9
_NEGLIGIBLE = 1e-6
_SMALL = 1e-3
"""Mass below which a segment isn't searched for its best index."""
_REFINEMENTS = 3
_MOST_PENDING = 4
"""Unfinished runs that are taken into account one by one; further ones are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """First bad commits that nothing tells apart.

    Attributes:
        start: The first of them.
        stop: One past the last of them.
        mass: Probability that the change is one of them; each is as likely as the others.
    """

    start: int
    stop: int
    mass: float


class _Belief:
    """Probability that the change is at or before an index: linear within a segment."""

    __slots__ = ("_sums", "masses", "start", "stops")

    def __init__(self, start: int, stops: Sequence[int], masses: Sequence[float]) -> None:
        self.start = start
        self.stops = stops
        self.masses = masses
        total, self._sums = 0.0, [0.0]
        for mass in masses:
            total += mass
            self._sums.append(total)

    def below(self, index: int) -> float:
        place = bisect_right(self.stops, index)
        if place == len(self.stops):
            return 1.0
        low = self.start if place == 0 else self.stops[place - 1]
        share = (index + 1 - low) / (self.stops[place] - low)
        total = self._sums[-1]
        return (
            min(1.0, max(0.0, (self._sums[place] + self.masses[place] * share) / total)) if index >= self.start else 0.0
        )

    def median(self) -> int:
        half = self._sums[-1] / 2
        place = min(bisect_left(self._sums, half, 1), len(self.stops)) - 1
        low = self.start if place == 0 else self.stops[place - 1]
        share = (half - self._sums[place]) / self.masses[place] if self.masses[place] else 0.0
        return low - 1 + round(share * (self.stops[place] - low))


def choose(
    segments: Sequence[Segment],
    free: int,
    *,
    running: Sequence[int] = (),
    skipped: Iterable[int] = (),
    last: int,
    error: float = 0.0,
) -> tuple[int, ...]:
    """The indices to run next, at most ``free``; fewer where more runs would tell nothing.

    Args:
        segments: Where the change may be, ascending and without gaps.
        free: How many runs can be started.
        running: Indices that are being run; several runs of one index stand several times.
        skipped: Indices known untestable: never chosen.
        last: The largest index that can be run.
        error: Chance that a run tells the wrong side. At 0 no index is chosen twice.
    """
    untestable = sorted(set(skipped))
    pending = list(running)
    chosen: list[int] = []
    for _ in range(free):
        index = _best(segments, pending, untestable, last, error)
        if index is None:
            break
        chosen.append(index)
        pending.append(index)
    if len(chosen) > 1 and error == 0:
        chosen = _refined(segments, list(running), chosen, untestable, last, error)
    return tuple(chosen)


def _refined(
    segments: Sequence[Segment], running: list[int], chosen: list[int], skipped: list[int], last: int, error: float
) -> list[int]:
    """Each choice made once more with the others given: one after the other, two would be 1/2 and 1/4, not thirds."""
    for _ in range(_REFINEMENTS):
        before = list(chosen)
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            again = _best(segments, running + others, skipped, last, error)
            chosen[place] = chosen[place] if again is None else again
        if chosen == before:
            break
    return chosen


def _best(segments: Sequence[Segment], pending: list[int], skipped: list[int], last: int, error: float) -> int | None:
    beliefs = _beliefs(segments, pending[:_MOST_PENDING], error)
    forbidden = set(skipped) if error else set(skipped) | set(pending)
    base = _entropy(error)
    reach = 2.0 ** (len(skipped) - 1)

    def information(index: int) -> float:
        bits = 0.0
        for chance, belief in beliefs:
            bits += chance * (_entropy(error + (1 - 2 * error) * belief.below(index)) - base)
        return bits

    def value(index: int) -> float:
        if not skipped:
            return information(index)
        distance = min(abs(index - s) for s in skipped)
        chance = distance / (distance + reach)
        if skipped[0] < index < skipped[-1]:
            chance /= max(reach, 1.0)  # between two untestable commits
        return information(index) * chance

    best, most = None, _WORTH_BITS
    for index in sorted(_candidates(beliefs, forbidden, skipped, last, information)):
        if (worth := value(index)) > most * (1 + 1e-12):
            best, most = index, worth
    return best


def _candidates(
    beliefs: list[tuple[float, _Belief]],
    forbidden: set[int],
    skipped: list[int],
    last: int,
    information: Callable[[int], float],
) -> set[int]:
    """Indices that can be the best: information is concave between two knots, chance has its bends at the skipped."""
    stops = beliefs[0][1].stops
    found: set[int] = set()
    if len(beliefs) == 1:
        middle = beliefs[0][1].median()
        found |= {middle - 1, middle, middle + 1}
    else:
        masses = [sum(each) for each in zip(*(belief.masses for _, belief in beliefs), strict=True)]
        for (low, high), mass in zip(pairwise([beliefs[0][1].start, *stops]), masses, strict=True):
            if mass > _SMALL:
                found |= {low - 1, high - 1, _peak(low - 1, high - 1, information)}
    ends = (beliefs[0][1].start - 1, stops[-1] - 1)
    for low, high in pairwise([ends[0], *skipped, ends[1] + 1]):
        inner = range(max(low + 1, ends[0]), min(high, ends[1] + 1))
        if skipped and inner:
            found.add(_peak(inner[0], inner[-1], information))
            step = 1
            while step < len(inner):
                found |= {inner[0] + step - 1, inner[-1] - step + 1}
                step *= 2
    nearby = {index + aside for index in found & forbidden for aside in (-1, 1)}
    return {index for index in found | nearby if 0 <= index <= last and index not in forbidden}


def _peak(low: int, high: int, information: Callable[[int], float]) -> int:
    """The index from ``low`` to ``high`` with the most information, which rises and then falls."""
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if information(left) < information(right):
            low = left + 1
        else:
            high = right
    return max(range(low, high + 1), key=information)


def _beliefs(segments: Sequence[Segment], pending: Sequence[int], error: float) -> list[tuple[float, _Belief]]:
    """For each way in which the unfinished runs may end: its probability, and the belief then."""
    start = segments[0].start
    cuts = sorted({index + 1 for index in pending})
    pieces: list[tuple[int, int, float]] = []
    for segment in segments:
        inner = [cut for cut in cuts if segment.start < cut < segment.stop]
        for low, high in pairwise([segment.start, *inner, segment.stop]):
            pieces.append((low, high, segment.mass * (high - low) / (segment.stop - segment.start)))
    stops = [high for _, high, _ in pieces]
    beliefs = []
    for ending in product((False, True), repeat=len(pending)):
        masses = []
        for low, _, mass in pieces:
            for index, is_bad in zip(pending, ending, strict=True):
                mass *= 1 - error if (low <= index) == is_bad else error
            masses.append(mass)
        if (chance := sum(masses)) > _NEGLIGIBLE:
            beliefs.append((chance, _Belief(start, stops, masses)))
    return beliefs


def _entropy(share: float) -> float:
    """Bits that a yes-or-no answer carries whose yes has this probability."""
    return 0.0 if share <= 0 or share >= 1 else -share * log2(share) - (1 - share) * log2(1 - share)
