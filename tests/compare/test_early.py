"""A run that goes on: surely bad, surely good, or not sure yet."""

import math

import pytest

from lossbisect.compare import EarlyState, early_state
from lossbisect.compare.noise import tolerance_noise
from tests.compare.logs import make_log

GOOD = [5.0 - 0.01 * row for row in range(40)]
BAD = [*GOOD[:9], *(value * 1.01 for value in GOOD[9:])]


@pytest.mark.parametrize("rows", range(1, 40, 3))
def test_bad_run_is_never_called_good(rows: int) -> None:
    """However few rows it has; from the third beyond its onset on it is surely bad."""
    early = early_state(make_log(GOOD), make_log(BAD[:rows]), bad_onset=10)
    assert early.state is (EarlyState.BAD if rows >= 12 else EarlyState.OPEN)
    assert early.iteration == rows


@pytest.mark.parametrize("rows", range(1, 40, 3))
def test_good_run_is_sure_once_it_is_past_the_bad_ends_onset(rows: int) -> None:
    """Five rows from there on; before that, agreeing proves nothing."""
    early = early_state(make_log(GOOD), make_log(GOOD[:rows]), bad_onset=10)
    assert early.state is (EarlyState.GOOD if rows >= 14 else EarlyState.OPEN)


def test_good_run_is_never_sure_where_no_onset_is_known() -> None:
    """It may still come."""
    assert early_state(make_log(GOOD), make_log(GOOD)).state is EarlyState.OPEN


def test_difference_that_is_not_surely_noise_is_open() -> None:
    """Between the two figures of the noise floor nothing is claimed."""
    doubtful = [*GOOD[:9], *(value * (1 + 6e-5) for value in GOOD[9:])]
    early = early_state(make_log(GOOD), make_log(doubtful), bad_onset=10)
    assert early.state is EarlyState.OPEN
    assert "not surely noise at iteration 10" in early.reason


def test_nan_is_bad_and_a_missing_value_is_open() -> None:
    """A NaN is no noise; an absent loss proves nothing."""
    floor = tolerance_noise(1e-3)
    assert early_state(make_log(GOOD), make_log([5.0, math.nan]), noise=floor).state is EarlyState.BAD
    missing = make_log([*GOOD[:12], None, *GOOD[13:20]])
    assert early_state(make_log(GOOD), missing, noise=floor, bad_onset=10).state is EarlyState.OPEN


def test_run_without_a_row_is_open() -> None:
    """It has just begun."""
    assert early_state(make_log(GOOD), make_log([]), bad_onset=10).state is EarlyState.OPEN
