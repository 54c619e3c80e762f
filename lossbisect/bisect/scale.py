"""One number for a noisy curve: how far it lies on the way from the good end to the bad end. Pure.

A run's differences from the good end are projected onto the bad end's (0 at the good end, 1 at the bad end), each
iteration weighed by its noise, so that many small differences of one pattern count together. An end's own run is
scored with that run left out of its end's mean; otherwise the ends would look further apart than they are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Score", "scores"]

_WINDOW = 3
"""Iterations on each side whose noise is averaged: two repeats of one iteration say little about it."""
_OTHER_FACTOR = 25.0
"""What is left beside the projection may be so many times the largest of the ends' own runs, squared, to be noise."""
_LIMITS = (-1.0, 2.0)
"""Scores are cut off here: one wild run must not pass for a wide noise."""

type Curve = Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Where a curve lies.

    Attributes:
        value: 0 at the good end, 1 at the bad end.
        is_other: It lies far beside the way between the two: another change.
    """

    value: float
    is_other: bool


def scores(goods: Sequence[Curve], bads: Sequence[Curve], others: Sequence[Curve]) -> list[Score]:
    """The scores of all runs: the good end's, the bad end's, then the others.

    Args:
        goods: Curves of the good end, at least two, all finite.
        bads: Curves of the bad end, at least two, all finite.
        others: Curves of the commits in between.
    """
    iterations = [i for i in goods[0] if all(i in curve for curve in (*goods, *bads, *others))]
    unit = {i: max(abs(curve[i]) for curve in (*goods, *bads)) or 1.0 for i in iterations}
    noise = _noise(goods, bads, iterations, unit)
    found = [_projected(curve, [*goods[:n], *goods[n + 1 :]], bads, iterations, noise) for n, curve in enumerate(goods)]
    found += [_projected(curve, goods, [*bads[:n], *bads[n + 1 :]], iterations, noise) for n, curve in enumerate(bads)]
    most = max(rest for _, rest in found)
    found += [_projected(curve, goods, bads, iterations, noise) for curve in others]
    low, high = _LIMITS
    return [
        Score(value=min(high, max(low, value)), is_other=rest > _OTHER_FACTOR * most and rest > 1)
        for value, rest in found
    ]


def _projected(
    curve: Curve, goods: Sequence[Curve], bads: Sequence[Curve], iterations: Sequence[int], noise: Mapping[int, float]
) -> tuple[float, float]:
    """Share of the way, and the mean square of what is left beside it, in squared noise widths."""
    way, along, squares = 0.0, 0.0, 0.0
    for i in iterations:
        good, bad = _mean(goods, i), _mean(bads, i)
        weight = 1 / noise[i] ** 2
        way += weight * (bad - good) ** 2
        along += weight * (curve[i] - good) * (bad - good)
        squares += weight * (curve[i] - good) ** 2
    share = along / way if way else 0.0
    return share, max(0.0, squares - share * along) / max(1, len(iterations))


def _noise(
    goods: Sequence[Curve], bads: Sequence[Curve], iterations: Sequence[int], unit: Mapping[int, float]
) -> dict[int, float]:
    """Noise width of each iteration, averaged over its neighbours; never quite 0."""
    squares = []
    for i in iterations:
        own = [
            sum((curve[i] - _mean(side, i)) ** 2 for curve in side) / (len(side) - 1)
            for side in (goods, bads)
            if len(side) > 1
        ]
        squares.append(sum(own) / len(own) / unit[i] ** 2)
    floor = max(squares) * 1e-6 + 1e-30
    widths = {}
    for place, i in enumerate(iterations):
        near = squares[max(0, place - _WINDOW) : place + _WINDOW + 1]
        widths[i] = unit[i] * math.sqrt(sum(near) / len(near) + floor)
    return widths


def _mean(curves: Sequence[Curve], iteration: int) -> float:
    return sum(curve[iteration] for curve in curves) / len(curves)
