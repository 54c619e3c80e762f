"""The shift between two curves, tested against noise that was measured on repeats.

Method: the statistic is the median over the rows of the relative difference between the two sides' means over their
runs, each row in units of its noise width, so a spike in any row has no weight. Its error comes from the repeats: each
run's deviation from the mean of its side is a curve of pure noise whose median is known to be 0. The medians of moving
blocks (Künsch, Ann. Stat. 1989), a quarter of the rows long or down to an eighth where there are many, are its noise
over a block. Their correlation from one block to the next, as an autoregression of order 1 and rounded up by half its
own error, says how much of it averages out over the whole. Student's t allows for how few blocks there are (effective
sample size). The last half and the last quarter are tested too, for differences that begin late; the error rate is
shared out 1/2, 1/4, 1/4 (Bonferroni).

Assumptions: runs of one side are exchangeable; both sides are equally noisy; the medians of blocks are about normal,
which heavy-tailed rows don't hurt. ``benchmarks/power.py`` measures how well it holds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.compare.types import Effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type FloatArray = NDArray[np.float64]

__all__ = ["ALPHA", "MIN_ROWS", "holm", "null_curves", "row_widths", "shift_effect", "suffix_p_value"]

ALPHA = 0.01
"""Rate of false alarms, over all metrics."""
MIN_ROWS = 16
"""Rows from which four blocks say anything: four rows each."""
_BLOCKS = (4, 8)
"""Blocks that the rows are cut into, at least and at most."""
_ROWS_A_BLOCK = 24
"""Rows of a block before there are more than the fewest: neighbouring rows of training noise are alike."""
_WINDOWS_A_BLOCK = 16
"""Positions of a moving block within its own length: more change little and cost much."""
_SHARES = ((1, 0.5), (2, 0.25), (4, 0.25))
"""Windows, as the last 1/1, 1/2 and 1/4 of the rows, with their shares of the error rate."""
_MIN_WINDOW = 8
_POWER = 0.99
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

    rows = difference.size
    error, freedom = _median_error(nulls, rows, repeats, float(np.median(quantum)) / 2)
    shift = float(np.median(difference))
    reach = float(stdtrit(freedom, 1 - alpha / 2)) * error
    widths = row_widths(nulls, quantum)
    least = float(stdtrit(freedom, 1 - alpha * _SHARES[0][1] / 2) + ndtri(_POWER)) * error
    return Effect(
        shift_rel=shift,
        low_rel=shift - reach,
        high_rel=shift + reach,
        p_value=suffix_p_value(difference / widths, nulls / widths, repeats),
        alpha=alpha,
        detectable_rel=least,
        rows=rows,
    )


def suffix_p_value(
    standard: "FloatArray", nulls: "FloatArray", repeats: int, *, most_freedom: float = math.inf
) -> float:
    """Probability of so large a shift of all rows or the last half or quarter by noise, corrected for the three.

    Args:
        standard: Differences by row, in noise widths.
        nulls: Curves of pure noise, in noise widths.
        repeats: Degrees of freedom between runs.
        most_freedom: Degrees of freedom of Student's t at most: fewer where medians of few rows have heavy tails.
    """
    import numpy as np
    from scipy.special import stdtr

    smallest = 1.0
    for part, share in _SHARES:
        window = standard.size // part
        if window < _MIN_WINDOW and part > 1:
            continue
        error, freedom = _median_error(nulls, window, repeats, 0.5)
        freedom = min(freedom, most_freedom)
        p_value = 2 * float(stdtr(freedom, -abs(float(np.median(standard[-window:]))) / error))
        smallest = min(smallest, p_value / share)
    return smallest


def _median_error(nulls: "FloatArray", window: int, repeats: int, floor: float) -> tuple[float, float]:
    """Standard error of a median over `window` rows, and its degrees of freedom."""
    import numpy as np

    rows = nulls.shape[1]
    fewest, most = _BLOCKS
    block = max(1, min(window, rows // min(most, max(fewest, rows // _ROWS_A_BLOCK))))
    stride = max(1, block // _WINDOWS_A_BLOCK)
    lag = block // stride
    block = lag * stride
    windows = np.lib.stride_tricks.sliding_window_view(nulls, block, axis=1)[:, ::stride]
    medians = np.median(windows, axis=2)
    variance, blocks = float(np.mean(medians**2)), rows / block
    later, earlier = medians[:, lag:], medians[:, :-lag]
    power = float(np.sum(later**2 + earlier**2)) / 2
    correlation = max(0.0, float(np.sum(later * earlier)) / power) if power > 0 else 0.0
    correlation = min(1.0, correlation + 0.5 * (1 - correlation) / np.sqrt(repeats * (blocks - 1)))
    in_window = _inflation(correlation, window / block)
    freedom = max(repeats * blocks / _inflation(correlation, blocks), float(repeats))
    return max(np.sqrt(variance * in_window * block / window), floor / np.sqrt(window)), freedom


def _inflation(correlation: float, blocks: float) -> float:
    """By how much the variance of a mean of so many blocks exceeds that of independent ones."""
    return 1 + 2 * sum((1 - lag / blocks) * correlation**lag for lag in range(1, round(blocks)))


def holm(effects: Sequence[Effect]) -> list[Effect]:
    """The same effects with p values corrected for their number (Holm, Scand. J. Stat. 1979: any dependence)."""
    order = sorted(range(len(effects)), key=lambda index: effects[index].p_value)
    adjusted = list(effects)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, effects[index].p_value * (len(effects) - rank)))
        adjusted[index] = replace(effects[index], p_value=largest)
    return adjusted
