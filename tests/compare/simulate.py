"""Made-up noise for simulations: how far two runs of one set-up lie apart, row by row."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["heavy_noise", "printed"]

_PAIR_WIDTH = {0.0: 1.79, 0.5: 1.94, 0.7: 2.06, 0.9: 2.21}
"""Width of the difference of two runs before scaling, by correlation; from 2,000 runs of 200 rows."""


def heavy_noise(
    rng: np.random.Generator, runs: int, rows: int, *, width: float, correlation: float = 0.7
) -> NDArray[np.float64]:
    """Relative noise of each run: autoregressive, with Student's t of 3 degrees of freedom.

    Args:
        rng: Where the chance comes from.
        runs: Number of runs.
        rows: Number of iterations.
        width: Noise width (MAD as a standard deviation) of the difference between two of the runs.
        correlation: From one row to the next.
    """
    steps = rng.standard_t(3, size=(runs, rows))
    noise = np.empty_like(steps)
    noise[:, 0] = steps[:, 0] / np.sqrt(1 - correlation**2)
    for row in range(1, rows):
        noise[:, row] = correlation * noise[:, row - 1] + steps[:, row]
    return np.asarray(noise * np.sqrt(1 - correlation**2) * (width / _PAIR_WIDTH[correlation]), dtype=np.float64)


def printed(values: NDArray[np.float64]) -> list[float]:
    """Values as a console log prints them: seven digits."""
    return [float(f"{value:.6E}") for value in values]
