"""The shift between two curves, tested against noise that was measured on repeats.

Method: the repeats' deviations from the mean of their side are curves of pure noise. Their memory from row to row
(`lossbisect.compare.memory`) is taken out of them and of the difference of the two sides' means, each row in units of
its noise width. The statistic is the median of what is left of the difference, so a spike in any row has no weight; its
error is that of a median of independent rows, by the median absolute deviation of what is left of the noise (sqrt(pi/2)
times the standard deviation by root rows: right for normal rows, too large for heavier tails). Student's t allows for
how few rows that was measured on: a quarter of them, which is how well a median absolute deviation is known. The last
half and the last quarter are tested too, for differences that begin late; the error rate is shared out 1/2, 1/4, 1/4
(Bonferroni).

Assumptions: runs of one side are exchangeable; both sides are equally noisy; the noise's memory is that of an
autoregression seen through white noise. ``benchmarks/power.py`` measures how well it holds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.compare.memory import CLIP, Memory, innovations, memory_of
from lossbisect.compare.types import Effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type FloatArray = NDArray[np.float64]

__all__ = [
    "ALPHA",
    "MIN_ROWS",
    "Noise",
    "holm",
    "measured_noise",
    "null_curves",
    "row_widths",
    "shift_effect",
    "suffix_p_value",
]

ALPHA = 0.01
"""Rate of false alarms, over all metrics."""
MIN_ROWS = 16
"""Rows from which the noise's memory can be told at all."""
_FREEDOM_A_ROW = 0.25
"""Degrees of freedom that a row of noise adds to a scale by its median absolute deviation."""
_SHARES = ((1, 0.5), (2, 0.25), (4, 0.25))
"""Windows, as the last 1/1, 1/2 and 1/4 of the rows, with their shares of the error rate."""
_MIN_WINDOW = 8
_POWER = 0.99
_LEAST_ERROR = 0.5
"""Where repeats are equal but for a few last digits: half a width, which is half of the smallest visible difference."""
_MAD_TO_SIGMA = 1.4826
_SCALE_ROWS = (12, 100)
"""Rows on either side that a row's noise width is taken from, at least and at most."""


def null_curves(baseline: "FloatArray", candidate: "FloatArray") -> "FloatArray":
    """Curves of pure noise, as noisy as the difference of the two sides' means.

    Args:
        baseline: Relative values, one row a run and one column an iteration.
        candidate: The same.

    Returns:
        One row for each run of a side that has more than one.
    """
    import numpy as np

    factor = np.sqrt(1 / len(baseline) + 1 / len(candidate))
    noise = [
        (side - side.mean(axis=0)) * (np.sqrt(len(side) / (len(side) - 1)) * factor)
        for side in (baseline, candidate)
        if len(side) > 1
    ]
    return np.concatenate(noise)


def row_widths(nulls: "FloatArray", quantum: "FloatArray") -> "FloatArray":
    """Noise width of each row (standard deviation by the median absolute deviation), from the rows around it.

    Args:
        nulls: From `null_curves`.
        quantum: Smallest relative difference that a row can show; no width is less than half of it.
    """
    import numpy as np

    fewest, most = _SCALE_ROWS
    half = min(most, max(fewest, nulls.shape[1] // 8))
    if 2 * half + 1 >= nulls.shape[1]:
        width = np.full(nulls.shape[1], np.median(np.abs(nulls)))
    else:
        padded = np.pad(np.abs(nulls), ((0, 0), (half, half)), mode="reflect")
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=1)
        width = np.median(np.moveaxis(around, 0, 1).reshape(nulls.shape[1], -1), axis=1)
    floor = np.maximum(quantum / 2, np.finfo(float).tiny)
    return np.asarray(np.maximum(width * _MAD_TO_SIGMA, floor), dtype=np.float64)


def shift_effect(
    difference: "FloatArray", nulls: "FloatArray", quantum: "FloatArray", repeats: int, *, alpha: float = ALPHA
) -> Effect:
    """The median shift with its interval and p value; the module's docstring tells the method.

    Args:
        difference: Relative difference of the two sides by row, `MIN_ROWS` rows or more.
        nulls: From `null_curves`, of the same rows.
        quantum: Smallest relative difference that a row can show.
        repeats: Runs less sides that have any repeat: the degrees of freedom between runs.
        alpha: Rate of false alarms.
    """
    import numpy as np
    from scipy.special import ndtri, stdtrit

    widths = row_widths(nulls, quantum)
    measured = measured_noise(nulls / widths, repeats)
    error = measured.error / math.sqrt(difference.size) * measured.memory.gain * float(np.median(widths))
    shift = float(np.median(difference))
    reach = float(stdtrit(measured.freedom, 1 - alpha / 2)) * error
    least = float(stdtrit(measured.freedom, 1 - alpha * _SHARES[0][1] / 2) + ndtri(_POWER)) * error
    return Effect(
        shift_rel=shift,
        low_rel=shift - reach,
        high_rel=shift + reach,
        p_value=suffix_p_value(difference / widths, measured),
        alpha=alpha,
        detectable_rel=least,
        rows=difference.size,
    )


class Noise(NamedTuple):
    """What the repeats' noise is like, in noise widths.

    Attributes:
        memory: How it goes on from row to row.
        error: Standard error of a median of one row's innovations; that of n rows is smaller by the root of n.
        freedom: Degrees of freedom of that error.
    """

    memory: Memory
    error: float
    freedom: float


def measured_noise(nulls: "FloatArray", repeats: int) -> Noise:
    """The noise of curves of pure noise, in noise widths."""
    import numpy as np

    memory = memory_of(nulls, repeats)
    spread = float(np.median(np.abs(innovations(nulls, memory)))) * _MAD_TO_SIGMA
    return Noise(
        memory=memory,
        error=max(spread * math.sqrt(math.pi / 2), _LEAST_ERROR),
        freedom=max(1.0, _FREEDOM_A_ROW * repeats * nulls.shape[1]),
    )


def suffix_p_value(standard: "FloatArray", noise: Noise, *, most_freedom: float = math.inf) -> float:
    """Probability of so large a shift of all rows or the last half or quarter by noise, corrected for the three.

    Args:
        standard: Differences by row, in noise widths.
        noise: From `measured_noise`.
        most_freedom: Degrees of freedom of Student's t at most: fewer where medians of few rows have heavy tails.
    """
    import numpy as np
    from scipy.special import stdtr

    windows = [(standard.size // part, share) for part, share in _SHARES]
    windows = [(window, share) for window, share in windows if window >= min(_MIN_WINDOW, standard.size)]
    # A shift that lasts isn't cut as a spike is, however large.
    lasting = max(abs(float(np.median(standard[-window:]))) for window, _ in windows)
    new = innovations(standard, noise.memory, limit=CLIP + lasting)
    smallest = 1.0
    for window, share in windows:
        size = abs(float(np.median(new[-window:]))) * math.sqrt(window) / noise.error
        smallest = min(smallest, 2 * float(stdtr(min(noise.freedom, most_freedom), -size)) / share)
    return smallest


def holm(effects: Sequence[Effect]) -> list[Effect]:
    """The same effects with p values corrected for their number (Holm, Scand. J. Stat. 1979: any dependence)."""
    order = sorted(range(len(effects)), key=lambda index: effects[index].p_value)
    adjusted = list(effects)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, effects[index].p_value * (len(effects) - rank)))
        adjusted[index] = replace(effects[index], p_value=largest)
    return adjusted
