"""The first divergent iteration of a noisy difference, with its own error.

Method: one change point. Before it the difference is noise around 0, from it on noise around a constant shift. The
rows' correlation (autoregression of order 1, measured on the repeats) is taken out first, and rows are weighed by
Student's t with 3 degrees of freedom, so an outlier counts little (Lange, Little & Taylor, JASA 1989). With every row
equally likely beforehand, the likelihoods of all change points, scaled to sum to 1, are their probabilities; the
smallest set of rows that holds 95 % of it is the error (Smith, Biometrika 1975).

Assumption: the shift is about constant once it is there; where it grows instead, the onset is dated too late.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossbisect.compare.effect import FloatArray

__all__ = ["onset_rows"]

_FREEDOM = 3.0
_COVERAGE = 0.95
_ROUNDS = 4
_MAD_TO_SIGMA = 1.4826


def onset_rows(standard: "FloatArray", nulls: "FloatArray") -> tuple[int, int, int]:
    """First, likeliest and last row of the interval that holds the onset with 95 %, 0-based.

    Args:
        standard: Differences by row, in noise widths.
        nulls: Curves of pure noise, in noise widths, one a row.
    """
    import numpy as np

    carry = _correlation(nulls)
    innovations = nulls[:, 1:] - carry * nulls[:, :-1]
    scale = max(float(np.median(np.abs(innovations))) * _MAD_TO_SIGMA, 1e-3)
    best: tuple[float, FloatArray] | None = None
    for part in (1, 2, 4, 8):
        shift = float(np.median(standard[-max(1, standard.size // part) :]))
        for _ in range(_ROUNDS):
            fit = _log_likelihoods(standard, shift, carry, scale)
            shift = float(np.median(standard[int(fit.argmax()) :]))
        if best is None or fit.max() > best[0]:
            best = (float(fit.max()), fit)
    assert best is not None
    return _interval(best[1])


def _correlation(nulls: "FloatArray") -> float:
    """Lag-1 correlation of the noise, each row cut at 4 widths; within [0, 0.99]."""
    import numpy as np

    cut = np.clip(nulls, -4, 4)
    power = float(np.sum(cut[:, 1:] ** 2 + cut[:, :-1] ** 2)) / 2
    return min(0.99, max(0.0, float(np.sum(cut[:, 1:] * cut[:, :-1])) / power)) if power > 0 else 0.0


def _log_likelihoods(standard: "FloatArray", shift: float, carry: float, scale: float) -> "FloatArray":
    """Log likelihood of each row as the onset, less that of no onset at all."""
    import numpy as np

    moved = standard - carry * np.concatenate([[0.0], standard[:-1]])
    scales = np.full(standard.size, scale)
    scales[0] = max(scale, 1.0)  # the first row has no row before it: its whole width counts
    without = _log_density(moved / scales)
    at_onset = _log_density((moved - shift) / scales) - without
    after = _log_density((moved - (1 - carry) * shift) / scales) - without
    from_here = np.cumsum(after[::-1])[::-1]
    return np.asarray(at_onset + np.concatenate([from_here[1:], [0.0]]), dtype=np.float64)


def _log_density(values: "FloatArray") -> "FloatArray":
    """Log density of Student's t, up to a constant."""
    import numpy as np

    return np.asarray(-(_FREEDOM + 1) / 2 * np.log1p(values**2 / _FREEDOM), dtype=np.float64)


def _interval(fit: "FloatArray") -> tuple[int, int, int]:
    import numpy as np

    weight = np.exp(fit - fit.max())
    order = np.argsort(-weight, kind="stable")
    needed = int(np.searchsorted(np.cumsum(weight[order]), _COVERAGE * weight.sum())) + 1
    held = order[:needed]
    return int(held.min()), int(order[0]), int(held.max())
