"""The memory of training noise, and how to take it out of a curve.

Weights that rounding has moved stay moved, so a row's noise resembles the row's before; what the batch adds is new in
each row. An autoregression seen through white noise says both: ARMA(1, 1) with a carry rho and a forgetting theta, of
which rho = theta = 0 is white noise and theta = 0 a plain autoregression. What is left once it is taken out, the
innovations, is independent from row to row.

Method: short repeats leave it open how long the memory is, so no single one is taken: each of a grid has a probability
by the repeats (Bayes, every memory of the grid alike beforehand, which is even in the logarithm of the gain). The
likelihood of the innovations is Student's t with 3 degrees of freedom, so outliers count little; their scale is the
likeliest one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lossbisect.compare.effect import FloatArray

__all__ = ["CLIP", "FREEDOM", "Likely", "Memory", "innovations", "likely_memories"]

_GAINS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.5, 11.0, 15.0, 20.0, 30.0)
"""Gains of the grid's plain autoregressions."""
_FORGETTING = (0.0, 0.25, 0.45, 0.6, 0.72, 0.82, 0.9)
CLIP = 8.0
"""Widths beyond which a value counts as so many: else a spike would echo in the rows after it."""
FREEDOM = 3.0
"""Of the innovations' Student's t."""
_MEDIAN_OF_T3 = 0.765
_ROUNDS = 3
_SMALLEST = 1e-12
_LEAST_PROBABILITY = 1e-6
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
    Memory(1 - 1 / gain, forgetting)
    for gain in _GAINS
    for forgetting in _FORGETTING
    if forgetting < 1 - 1 / gain or not forgetting
)


class Likely(NamedTuple):
    """A memory that the noise may have.

    Attributes:
        memory: How it goes on from row to row.
        scale: Scale of its innovations, as Student's t with 3 degrees of freedom has it.
        probability: How likely it is; 1 in all.
    """

    memory: Memory
    scale: float
    probability: float


def likely_memories(nulls: "FloatArray", repeats: int) -> list[Likely]:
    """The memories that curves of pure noise may have.

    Args:
        nulls: Noise, in noise widths, one curve a row.
        repeats: Degrees of freedom between the curves: the curves of one side sum to 0, so they are fewer.
    """
    import numpy as np

    cut = nulls[:, :_ROWS_FOR_A_FIT]
    squares = np.square(innovations(cut, _GRID)).reshape(len(_GRID), -1)
    scales = np.maximum(np.sqrt(np.median(squares, axis=1)) / _MEDIAN_OF_T3, _SMALLEST)
    for _ in range(_ROUNDS):
        weights = (FREEDOM + 1) / (FREEDOM + squares / scales[:, None] ** 2)
        scales = np.maximum(np.sqrt((weights * squares).mean(axis=1)), _SMALLEST)
    tails = np.log1p(squares / scales[:, None] ** 2 / FREEDOM).sum(axis=1)
    widths = np.array([memory.width for memory in _GRID])
    fits = -squares.shape[1] * np.log(scales) - (FREEDOM + 1) / 2 * tails - len(cut) * np.log(widths)
    fits *= repeats / len(cut)
    probabilities = np.exp(fits - fits.max())
    probabilities[probabilities < _LEAST_PROBABILITY] = 0.0
    probabilities /= probabilities.sum()
    return [
        Likely(memory, float(scale), float(probability))
        for memory, scale, probability in zip(_GRID, scales, probabilities, strict=True)
        if probability
    ]


def innovations(curves: "FloatArray", memories: Sequence[Memory], *, limit: float = CLIP) -> "FloatArray":
    """What is new in each row: a shift by 1 from some row on is 1 there and 1 / gain further on.

    Args:
        curves: In noise widths; rows are along the last axis. No row needs a later one.
        memories: That the noise may have.
        limit: Widths beyond which a value counts as so many.

    Returns:
        The same shape for each memory, along a new first axis.
    """
    import numpy as np

    cut = np.clip(curves, -limit, limit)
    echoes = {forgetting: _echoed(cut, forgetting) for forgetting in {memory.forgetting for memory in memories}}
    return np.stack([_new(cut, echoes[memory.forgetting], memory) for memory in memories])


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
