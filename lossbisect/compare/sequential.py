"""The shift test for a run that is still going on: however often it is looked at, the stated error rate holds.

Method: alpha spending with a union bound (Lan & DeMets, Biometrika 1983). The test is made when the run has 16 rows,
and each time it has a quarter more; look number j may spend alpha / (j (j + 1)), which sums to alpha over any number
of looks, however they depend on each other. Between two looks nothing is tested, so looking more often costs nothing.

Assumption: that of `lossbisect.compare.effect`, of which each look is one test.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lossbisect.compare.effect import ALPHA, MIN_ROWS, measured_noise, suffix_p_value

if TYPE_CHECKING:
    from lossbisect.compare.effect import FloatArray

__all__ = ["first_alarm", "looks"]

_GROWTH = 1.25


def looks(rows: int, alpha: float = ALPHA) -> Iterator[tuple[int, float]]:
    """The row counts up to `rows` at which a test is made, each with the error rate that it may spend."""
    count, number = MIN_ROWS, 1
    while count <= rows:
        yield count, alpha / (number * (number + 1))
        count, number = max(count + 1, int(count * _GROWTH)), number + 1


def first_alarm(standard: "FloatArray", nulls: "FloatArray", repeats: int, *, alpha: float = ALPHA) -> int | None:
    """Number of rows after which the run is surely different; None if it isn't so far.

    Args:
        standard: Differences by row so far, in noise widths.
        nulls: Curves of pure noise, in noise widths, of any length.
        repeats: Degrees of freedom between runs.
        alpha: Rate of false alarms over the whole run.
    """
    if standard.size < MIN_ROWS:
        return None
    noise = measured_noise(nulls, repeats)
    for rows, share in looks(standard.size, alpha):
        if suffix_p_value(standard[:rows], noise) <= share:
            return rows
    return None
