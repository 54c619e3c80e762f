"""The first divergent iteration of a noisy difference, with its own error.

Method: one change point. Before it the difference is noise around 0, from it on noise around a constant shift. The
noise's memory is taken out first, each of those that the repeats leave possible by its probability
(`lossbisect.compare.memory`), and rows are weighed by Student's t with 3 degrees of freedom, so an outlier counts
little (Lange, Little & Taylor, JASA 1989). With every row equally likely beforehand, the likelihoods of all change
points, scaled to sum to 1, are their probabilities; the smallest set of rows that holds 95 % of it is the error
(Smith, Biometrika 1975).

Assumption: the shift is about constant once it is there; where it grows instead, the onset is dated too late.
"""

from typing import TYPE_CHECKING

from lossbisect.compare.memory import CLIP, FREEDOM, Likely, innovations, likely_memories

if TYPE_CHECKING:
    from lossbisect.compare.effect import FloatArray

__all__ = ["onset_rows"]

_COVERAGE = 0.95
_ROUNDS = 4
_MEMORIES = 8
"""The likeliest ones are enough: an onset hardly depends on them."""
_MANY_ROWS = 4000
"""From so many on the likeliest one is as good as known."""
_LEAST_SCALE = 1e-3
_SETTLED = 0.01
"""A step's echo in the innovations is over once it is this near to where it ends."""


def onset_rows(standard: "FloatArray", nulls: "FloatArray", repeats: int) -> tuple[int, int, int]:
    """First, likeliest and last row of the interval that holds the onset with 95 %, 0-based.

    Args:
        standard: Differences by row, in noise widths.
        nulls: Curves of pure noise, in noise widths, one a row.
        repeats: Degrees of freedom between those curves.
    """
    import numpy as np

    likely = sorted(likely_memories(nulls, repeats), key=lambda item: -item.probability)
    likely = likely[: _MEMORIES if standard.size <= _MANY_ROWS else 1]
    cut = np.clip(standard, -CLIP, CLIP)
    fits = np.stack([np.log(item.probability) + _fit(cut, item) for item in likely])
    return _interval(np.logaddexp.reduce(fits, axis=0))


def _fit(standard: "FloatArray", likely: Likely) -> "FloatArray":
    """Log likelihood of each row as the onset of the shift that fits best, for one memory."""
    import numpy as np

    new, step = innovations(np.stack([standard, np.ones(standard.size)]), [likely.memory])[0]
    scale = max(likely.scale, _LEAST_SCALE)
    echo = _echo(likely, standard.size)
    fits: dict[float, FloatArray] = {}
    for part in (1, 2, 4, 8):
        shift = float(np.median(standard[-max(1, standard.size // part) :]))
        for _ in range(_ROUNDS):
            if shift in fits:
                break
            fits[shift] = _log_likelihoods(new / scale, shift / scale, echo, step)
            shift = float(np.median(standard[int(fits[shift].argmax()) :]))
    return np.asarray(max(fits.values(), key=np.max) - standard.size * np.log(scale), dtype=np.float64)


def _echo(likely: Likely, rows: int) -> "FloatArray":
    """What a step by 1 adds to the innovations of its row and of those after it, until that stays about the same."""
    import numpy as np

    carry, forgetting = likely.memory
    fading = forgetting ** np.arange(rows)
    echo = 1 - (carry - forgetting) * (1 - fading) / (1 - forgetting)
    return np.asarray(echo[: int(np.argmax(np.abs(echo - 1 / likely.memory.gain) < _SETTLED)) + 1], dtype=np.float64)


def _log_likelihoods(new: "FloatArray", shift: float, echo: "FloatArray", step: "FloatArray") -> "FloatArray":
    """Log likelihood of each row as the onset of a shift; ``step`` is what one from the first row on adds."""
    import numpy as np

    rows = new.size
    before = np.concatenate([[0.0], np.cumsum(_log_density(new))])
    settled = np.concatenate([np.cumsum(_log_density(new - shift * echo[-1])[::-1])[::-1], np.zeros(echo.size + 1)])
    fit = before[:rows] + settled[np.arange(rows) + echo.size]
    for later, share in enumerate(echo):
        fit[: rows - later] += _log_density(new[later:] - shift * share)
    fit[0] = _log_density(new - shift * step).sum()  # the first row has no row before it
    return np.asarray(fit, dtype=np.float64)


def _log_density(values: "FloatArray") -> "FloatArray":
    """Log density of Student's t, up to a constant."""
    import numpy as np

    return np.asarray(-(FREEDOM + 1) / 2 * np.log1p(values**2 / FREEDOM), dtype=np.float64)


def _interval(fit: "FloatArray") -> tuple[int, int, int]:
    import numpy as np

    weight = np.exp(fit - fit.max())
    order = np.argsort(-weight, kind="stable")
    needed = int(np.searchsorted(np.cumsum(weight[order]), _COVERAGE * weight.sum())) + 1
    held = order[:needed]
    return int(held.min()), int(order[0]), int(held.max())
