"""The test of the newest commits, by simulation with fixed seeds."""

import math

import numpy as np
import pytest

from lossbisect.triage.tip import LEAST_BEFORE, tip_test

SEED = 20261130
COUNT = 1000


def _share(before: int, newest: int, shift: float, *, outliers: int = 0) -> float:
    rng = np.random.default_rng([SEED, before, newest])
    alarms = 0
    for _ in range(COUNT):
        old = rng.standard_normal(before)
        old[:outliers] += 50.0
        found = tip_test(list(old), list(rng.standard_normal(newest) + shift))
        assert found is not None
        alarms += found.is_alarm
    return alarms / COUNT


@pytest.mark.parametrize(("before", "newest"), [(8, 1), (36, 1), (36, 4)])
def test_the_false_alarm_rate_is_what_it_says(before: int, newest: int) -> None:
    """Two in a hundred, with few runs before as with many, within four standard errors of the simulation."""
    assert _share(before, newest, 0.0) == pytest.approx(0.02, abs=4 * math.sqrt(0.02 * 0.98 / COUNT)), f"seed {SEED}"


def test_four_repeats_at_the_tip_decide_after_one_commit() -> None:
    """At three standard deviations nine in ten are seen at the first commit; Otava sees a quarter there."""
    assert _share(36, 4, 3.0) >= 0.9, f"seed {SEED}"
    assert _share(36, 1, 3.0) >= 0.5, f"seed {SEED}"


def test_outliers_before_make_it_careful_and_not_blind() -> None:
    """A fifth of wild runs raises no false alarm, and a large shift is still seen."""
    assert _share(20, 4, 0.0, outliers=4) <= 0.02 + 4 * math.sqrt(0.02 * 0.98 / COUNT)
    assert _share(20, 4, 5.0, outliers=4) >= 0.9


def test_too_little_says_nothing() -> None:
    """Few runs, or none that is a number, give no test; runs equal bit for bit make any shift an alarm."""
    assert tip_test([1.0] * (LEAST_BEFORE - 1), [1.0]) is None
    assert tip_test([1.0] * 20, [math.nan]) is None
    assert tip_test([math.nan] * 20, [1.0]) is None
    exact, moved = tip_test([1.0] * 20, [1.0]), tip_test([1.0] * 20, [1.0 + 1e-12])
    assert exact is not None
    assert moved is not None
    assert (exact.is_alarm, moved.is_alarm) == (False, True)
    with pytest.raises(ValueError, match="rate"):
        tip_test([1.0] * 20, [1.0], false_alarm_rate=0.9)
