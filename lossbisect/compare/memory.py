"""The memory of training noise, and how to take it out of a curve.

Weights that rounding has moved stay moved, so a row's noise resembles the row's before; what the batch adds is new in
each row. An autoregression seen through white noise says both: ARMA(1, 1) with a carry rho and a forgetting theta, of
which rho = theta = 0 is white noise and theta = 0 a plain autoregression. What is left once it is taken out, the
innovations, is independent from row to row, so medians of few rows can be trusted.

Method: a grid over both parameters; the likelihood of the innovations is Student's t with 3 degrees of freedom, its
scale by the median absolute value, so outliers count little. Of the parameters that the repeats don't speak against,
those with the longest memory are taken (profile likelihood: 1 below the best, more where there are few rows, and half
the logarithm of the noise's gain added, since short series show less memory than they have: Kendall, Biometrika 1954).
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lossbisect.compare.effect import FloatArray

__all__ = ["CLIP", "Memory", "innovations", "memory_of"]

_CARRIES = (0.0, 0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.84, 0.88, 0.92, 0.95, 0.97)
_FORGETTING = (0.0, 0.25, 0.45, 0.6, 0.72, 0.82, 0.9)
CLIP = 8.0
"""Widths beyond which a value counts as so many: else a spike would echo in the rows after it."""
_DROP, _ROWS_THAT_DOUBLE_IT = 1.0, 50.0
_GAIN_POWER = 0.5
_FREEDOM = 3.0
_MEDIAN_OF_T3 = 0.765
_SMALLEST = 1e-12
_ROWS_FOR_A_FIT = 4000
"""Rows that the fit looks at: more don't tell it better."""


class Memory(NamedTuple):
    """How noise goes on from row to row.

    Attributes:
        carry: Share of a row's noise that the next row keeps; in [0, 1).
        forgetting: Share of an innovation that is seen in its own row only; at most `carry`.
    """

    carry: float
    forgetting: float

    @property
    def gain(self) -> float:
        """By how much noise adds up over many rows: 1 for white noise."""
        return (1 - self.forgetting) / (1 - self.carry)

    @property
    def width(self) -> float:
        """Width of the noise for innovations of width 1."""
        return float(((1 + self.forgetting**2 - 2 * self.carry * self.forgetting) / (1 - self.carry**2)) ** 0.5)


_GRID = tuple(
    Memory(carry, forgetting)
    for carry in _CARRIES
    for forgetting in _FORGETTING
    if forgetting < carry or not forgetting
)


def memory_of(nulls: "FloatArray", repeats: int) -> Memory:
    """The longest memory that curves of pure noise don't speak against.

    Args:
        nulls: Noise, in noise widths, one curve a row.
        repeats: Degrees of freedom between the curves: the curves of one side sum to 0, so they are fewer.
    """
    import numpy as np

    cut = np.clip(nulls[:, :_ROWS_FOR_A_FIT], -CLIP, CLIP)
    echoes = {forgetting: _echoed(cut, forgetting) for forgetting in _FORGETTING}
    sizes = np.abs([_new(cut, echoes[memory.forgetting], memory) for memory in _GRID]).reshape(len(_GRID), -1)
    scales = np.maximum(np.median(sizes, axis=1) / _MEDIAN_OF_T3, _SMALLEST)
    tails = np.log1p((sizes / scales[:, None]) ** 2 / _FREEDOM).sum(axis=1)
    widths, gains = (np.array([getattr(memory, name) for memory in _GRID]) for name in ("width", "gain"))
    fits = -sizes.shape[1] * np.log(scales) - (_FREEDOM + 1) / 2 * tails - len(cut) * np.log(widths)
    fits = repeats / len(cut) * fits + _GAIN_POWER * np.log(gains)
    drop = _DROP * (1 + _ROWS_THAT_DOUBLE_IT / (repeats * cut.shape[1]))
    return _GRID[int(np.argmax(np.where(fits >= fits.max() - drop, gains, 0.0)))]


def innovations(curves: "FloatArray", memory: Memory, *, limit: float = CLIP) -> "FloatArray":
    """What is new in each row: the same shape; a shift by 1 from some row on is 1 there and 1 / gain further on.

    Args:
        curves: In noise widths; rows are along the last axis. No row needs a later one.
        memory: Of the noise.
        limit: Widths beyond which a value counts as so many.
    """
    import numpy as np

    cut = np.clip(curves, -limit, limit)
    return _new(cut, _echoed(cut, memory.forgetting), memory)


def _echoed(curves: "FloatArray", forgetting: float) -> "FloatArray":
    """Each row plus the rows before it, fading by that factor a row."""
    import numpy as np

    if not forgetting:
        return curves
    fading = _fading(forgetting, curves.shape[-1])
    flat = curves.reshape(-1, curves.shape[-1])
    return np.stack([np.convolve(row, fading)[: row.size] for row in flat]).reshape(curves.shape)


def _fading(forgetting: float, rows: int) -> "FloatArray":
    """The factors of the rows before, up to where they are below a millionth."""
    import numpy as np

    seen = min(rows, int(np.log(1e-6) / np.log(forgetting)) + 1)
    return np.asarray(forgetting ** np.arange(seen), dtype=np.float64)


def _new(cut: "FloatArray", echoed: "FloatArray", memory: Memory) -> "FloatArray":
    """Innovations from the curve with its echo: the carried share of the row before is taken off.

    The first row has no row before it: its whole width counts as one innovation.
    """
    import numpy as np

    new = np.array(echoed, dtype=np.float64)
    new[..., 1:] -= memory.carry * echoed[..., :-1]
    fading = _fading(memory.forgetting, cut.shape[-1]) if memory.forgetting else np.ones(1)
    new[..., : fading.size] += cut[..., :1] * (1 / memory.width - 1) * fading
    return new
