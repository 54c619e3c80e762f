"""The shift between two curves, tested against noise that was measured on repeats.

Method: the repeats' deviations from the mean of their side are curves of pure noise. A memory from row to row
(`lossbisect.compare.memory`) is taken out of them and of the difference of the two sides' means, each row in units of
its noise width. Each row's rest then has a vote that a cut makes the same for all large ones (the score of Huber, Ann.
Math. Stat. 1964), so a spike in any row hardly counts. The statistic is the votes' sum over its standard error, which
comes from the noise's own votes: their variance with the correlation that the memory has left (prewhitened kernel
estimate, Andrews & Monahan, Econometrica 1992; Bartlett's kernel over a quarter of the rows, a fixed share, Kiefer &
Vogelsang, Econometric Theory 2005). Student's t allows for how few rows that was measured on: 3/2 degrees of freedom
for each kernel's length of noise, which is what Bartlett's kernel leaves. The p value is the mean over all memories
that the repeats leave possible, each by its probability. The last half and the last quarter are tested too, for
differences that begin late; the error rate is shared out 1/2, 1/4, 1/4 (Bonferroni).

Assumptions: runs of one side are exchangeable; both sides are equally noisy; the noise's memory is about that of an
autoregression seen through white noise. ``benchmarks/power.py`` measures how well it holds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.compare.memory import CLIP, Memory, innovations, likely_memories
from lossbisect.compare.types import Effect

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type FloatArray = NDArray[np.float64]

__all__ = [
    "ALPHA",
    "MIN_ROWS",
    "Model",
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
_CUT = 1.2
"""Scales beyond which a row's vote grows no more."""
_KERNEL = 0.25
"""Share of the rows that Bartlett's kernel spans."""
_FREEDOM_A_KERNEL = 1.5
_LEAST_SHARE = 0.3
"""Of the variance that votes have without any correlation: no less is believed of so few rows."""
_SHARES = ((1, 0.5), (2, 0.25), (4, 0.25))
"""Windows, as the last 1/1, 1/2 and 1/4 of the rows, with their shares of the error rate."""
_MIN_WINDOW = 8
_POWER = 0.99
_LEAST_SCALE = 0.5
"""Where repeats are equal but for a few last digits: half a width, which is half of the smallest visible difference."""
_LEAST_VOTE = 0.5
"""Standard deviation of a row's vote at least, for the same case; noise has 0.8."""
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
    from scipy.special import ndtri

    widths = row_widths(nulls, quantum)
    noise = measured_noise(nulls / widths, repeats)
    a_row = float(np.median(widths)) / math.sqrt(difference.size)
    shift = float(np.median(difference))
    reach = _quantile(noise, alpha) * a_row
    typical = sum(model.probability * model.error for model in noise.models) * a_row
    return Effect(
        shift_rel=shift,
        low_rel=shift - reach,
        high_rel=shift + reach,
        p_value=suffix_p_value(difference / widths, noise),
        alpha=alpha,
        detectable_rel=_quantile(noise, alpha * _SHARES[0][1]) * a_row + float(ndtri(_POWER)) * typical,
        rows=difference.size,
    )


class Model(NamedTuple):
    """One memory that the noise may have, and what follows from it, in noise widths.

    Attributes:
        memory: How the noise goes on from row to row.
        probability: How likely it is; 1 in all.
        scale: Scale of the innovations.
        vote: Standard deviation of a row's vote, with what correlation there is left.
        error: Standard error of a shift of one row; that of n rows is smaller by the root of n.
    """

    memory: Memory
    probability: float
    scale: float
    vote: float
    error: float


class Noise(NamedTuple):
    """What the repeats' noise is like.

    Attributes:
        models: What it may be.
        freedom: Degrees of freedom of its errors.
    """

    models: tuple[Model, ...]
    freedom: float


def measured_noise(nulls: "FloatArray", repeats: int) -> Noise:
    """The noise of curves of pure noise, in noise widths; degrees of freedom between the curves are `repeats`."""
    import numpy as np

    span = max(1, round(_KERNEL * nulls.shape[1]))
    likely = likely_memories(nulls, repeats)
    scales = np.maximum([item.scale for item in likely], _LEAST_SCALE)
    rest = innovations(nulls, [item.memory for item in likely]) / scales[:, None, None]
    votes = np.maximum(_long_run_deviations(np.clip(rest, -_CUT, _CUT), span), _LEAST_VOTE)
    voting = np.maximum(np.mean(np.abs(rest) < _CUT, axis=(1, 2)), _LEAST_SHARE)
    errors = scales * votes / voting * [item.memory.gain for item in likely]
    models = (
        Model(item.memory, item.probability, *map(float, figures))
        for item, *figures in zip(likely, scales, votes, errors, strict=True)
    )
    return Noise(tuple(models), max(1.0, _FREEDOM_A_KERNEL * repeats * nulls.shape[1] / span))


def _long_run_deviations(votes: "FloatArray", span: int) -> "FloatArray":
    """By how much a sum of n votes varies, over the root of n, for each model; Bartlett's kernel below lag `span`."""
    import numpy as np

    rows = votes.shape[-1]
    spectrum = np.abs(np.fft.rfft(votes, 2 * rows)) ** 2
    products = np.fft.irfft(spectrum)[..., :span].mean(axis=1) / rows
    kernel = 1 - np.arange(span) / span
    variances = 2 * products @ kernel - products[:, 0]
    return np.asarray(np.sqrt(np.maximum(variances, _LEAST_SHARE * products[:, 0])), dtype=np.float64)


def _quantile(noise: Noise, alpha: float) -> float:
    """The shift of one row, in noise widths, that noise exceeds with probability `alpha`, up or down."""
    import numpy as np
    from scipy.special import stdtr, stdtrit

    errors, chances = (np.array([getattr(model, name) for model in noise.models]) for name in ("error", "probability"))
    low, high = 0.0, float(stdtrit(noise.freedom, 1 - alpha / 2) * errors.max())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * chances @ stdtr(noise.freedom, -middle / errors) > alpha else (low, middle)
    return high


def suffix_p_value(standard: "FloatArray", noise: Noise) -> float:
    """Probability of so large a shift of all rows or the last half or quarter by noise, corrected for the three.

    Args:
        standard: Differences by row, in noise widths.
        noise: From `measured_noise`.
    """
    import numpy as np
    from scipy.special import stdtr

    windows = [(standard.size // part, share) for part, share in _SHARES]
    windows = [(window, share) for window, share in windows if window >= min(_MIN_WINDOW, standard.size)]
    # A shift that lasts isn't cut as a spike is, however large.
    lasting = max(abs(float(np.median(standard[-window:]))) for window, _ in windows)
    new = innovations(standard, [model.memory for model in noise.models], limit=CLIP + lasting)
    scales, votes, chances = (
        np.array([getattr(model, name) for model in noise.models]) for name in ("scale", "vote", "probability")
    )
    cast = np.clip(new / scales[:, None], -_CUT, _CUT)
    smallest = 1.0
    for window, share in windows:
        sizes = np.abs(cast[:, -window:].sum(axis=1)) / (votes * math.sqrt(window))
        smallest = min(smallest, float(2 * chances @ stdtr(noise.freedom, -sizes)) / share)
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
