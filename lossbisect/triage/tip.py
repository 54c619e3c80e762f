"""Did the newest commits leave the level of those before them? Pure: a predictive test on one number a run.

Method: the level is the median of the runs before, its scale their median absolute deviation (times 1.4826, which makes
it the standard deviation of a normal distribution). The mean of the m newest runs is predicted to lie within

    level ± q · scale · sqrt(1/m + e/n),

where n is the number of runs before and e = pi/2 the price of the median against the mean. q is the quantile, at the
stated false-alarm rate, of that statistic itself for normal noise: the ratio isn't Student's with any degrees of
freedom, so it is simulated once for each n and m, with a fixed seed, and remembered.

Assumption: runs before are independent, of one level, with normal noise; up to a fifth of them may be outliers, which
moves the level little and makes the test more careful. No multiplicity over commits is corrected: the rate is that of
one look. Sources: Hahn & Meeker, Statistical Intervals (prediction of a future mean); Rousseeuw & Croux 1993 (MAD).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lossbisect.triage.types import Curve

if TYPE_CHECKING:
    import numpy as np

__all__ = ["LEAST_BEFORE", "TipTest", "is_suspect", "last_value", "tip_test"]

LEAST_BEFORE = 8
"""Runs before the newest ones below which no scale can be told."""
_NORMAL = 1.4826
_MEDIAN_PRICE = math.pi / 2
_SUSPECT_RATE = 0.2
_DRAWS = 100_000
_MOST_SIMULATED = 400
"""Runs before above which the quantile is that of so many: from here on it changes by less than a hundredth."""
_SEED = 20261130


@dataclass(frozen=True, kw_only=True, slots=True)
class TipTest:
    """What is said of the newest runs.

    Attributes:
        level: Median of the runs before.
        scale: Their robust standard deviation.
        shift: Mean of the newest runs minus the level.
        limit: Largest shift that noise explains at the stated rate.
        false_alarm_rate: Chance of an alarm where nothing has changed, for one look.
        before: Number of runs before.
        newest: Number of newest runs.
    """

    level: float
    scale: float
    shift: float
    limit: float
    false_alarm_rate: float
    before: int
    newest: int

    @property
    def is_alarm(self) -> bool:
        """Noise doesn't explain the shift."""
        return abs(self.shift) > self.limit


def last_value(curve: Curve) -> float:
    """The number that a run is counted by: its last iteration's value, NaN where there is none."""
    return curve[max(curve)] if curve else math.nan


def tip_test(before: Sequence[float], newest: Sequence[float], *, false_alarm_rate: float = 0.02) -> TipTest | None:
    """Whether the newest runs have left the level of those before.

    Args:
        before: One number for each run at the old level, such as its last loss, in any order.
        newest: The same of the newest commit or commits, repeats included; at least one.
        false_alarm_rate: Chance of an alarm where nothing has changed, from 1e-4 to 0.5.

    Returns:
        The test; None with fewer than `LEAST_BEFORE` finite runs before or without finite newest ones.

    Raises:
        ValueError: The rate lies outside.
    """
    import numpy as np

    if not 1e-4 <= false_alarm_rate <= 0.5:
        raise ValueError(f"A false-alarm rate lies from 1e-4 to 0.5, not {false_alarm_rate}")
    old = np.array([value for value in before if math.isfinite(value)])
    new = np.array([value for value in newest if math.isfinite(value)])
    if old.size < LEAST_BEFORE or not new.size:
        return None
    level = float(np.median(old))
    scale = float(_NORMAL * np.median(np.abs(old - level)))
    width = math.sqrt(1 / new.size + _MEDIAN_PRICE / old.size)
    quantile = float(np.quantile(_null(min(old.size, _MOST_SIMULATED), new.size), 1 - false_alarm_rate))
    return TipTest(
        level=level,
        scale=scale,
        shift=float(new.mean()) - level,
        limit=quantile * scale * width,
        false_alarm_rate=false_alarm_rate,
        before=int(old.size),
        newest=int(new.size),
    )


def is_suspect(before: Sequence[float], tip: Curve) -> bool:
    """Whether a first run lies so far from the level that repeats are worth it: one in five does without any change.

    Where runs repeat themselves bit for bit there is no scatter to ask, and nothing is suspect by it.
    """
    found = tip_test(before, [last_value(tip)], false_alarm_rate=_SUSPECT_RATE)
    return found is not None and found.scale > 0 and found.is_alarm


@lru_cache(64)
def _null(before: int, newest: int) -> "np.typing.NDArray[np.float64]":
    """The statistic's absolute value where nothing has changed, sorted."""
    import numpy as np

    rng = np.random.default_rng([_SEED, before, newest])
    draws = max(10_000, _DRAWS * LEAST_BEFORE // max(before, LEAST_BEFORE))
    old = rng.standard_normal((draws, before))
    level = np.median(old, axis=1)
    scale = _NORMAL * np.median(np.abs(old - level[:, None]), axis=1)
    mean = rng.standard_normal(draws) / math.sqrt(newest)
    width = math.sqrt(1 / newest + _MEDIAN_PRICE / before)
    values: np.typing.NDArray[np.float64] = np.sort(np.abs(mean - level) / (scale * width))
    return values
