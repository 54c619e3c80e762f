"""Where a difference began and how it went on, under noise: made curves with seeds that a failure prints."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from lossbisect.compare import compare_logs
from lossbisect.compare.align import align
from lossbisect.compare.evidence import Evidence, Pair, pairs_of
from lossbisect.compare.stats import difference
from lossbisect.compare.types import Diagnosis, NoiseFloor
from lossbisect.parsers.runlog import ConfigValue
from tests.compare.logs import FLOAT32, make_log
from tests.compare.simulate import heavy_noise, printed

SEED = 20261201
ROWS = 80
NOISE = NoiseFloor(source="made", surely_noise_rel=1e-3, surely_real_rel=1e-2, surely_shift_rel=1e-3)
BFLOAT16: dict[str, ConfigValue] = {"params_dtype": "torch.bfloat16", "bf16": True, "fp16": False}
TREND = np.linspace(10.4, 7.4, ROWS)


def evidence(relative: Sequence[float]) -> Evidence:
    """What a diagnosis sees of a candidate that lies this far off, row by row."""
    left = make_log(printed(TREND))
    right = make_log(printed(TREND * (1 + np.asarray(relative))))
    curves = align(left, right, "lm_loss")
    return Evidence(
        metric="lm_loss",
        noise=NOISE,
        pairs={"lm_loss": pairs_of(curves)},
        differences={"lm_loss": difference(curves, NOISE)},
    )


def first_shape(relative: NDArray[np.float64], *, is_bfloat16: bool = False) -> Diagnosis:
    """What is said about a candidate that lies this far off, row by row."""
    config = BFLOAT16 if is_bfloat16 else FLOAT32
    left = make_log(printed(TREND), config=config)
    right = make_log(printed(TREND * (1 + relative)), config=config)
    return compare_logs(left, right).comparison.diagnoses[0]


def test_onset_is_walked_back_over_rows_that_noise_hid() -> None:
    """Rows 31 to 35 lie off too, by less than is surely real in any of them."""
    relative = [0.0] * 30 + [8e-3] * 5 + [1.5e-2] * 45
    seen = evidence(relative)
    assert (seen.onset, seen.began) == (36, 31)


def test_walk_ends_at_rows_of_less_than_half_the_level() -> None:
    """Noise before the onset isn't part of it, whichever its sign."""
    for before in (6e-3, -8e-3, -2e-2 / 3):
        assert evidence([0.0] * 30 + [before] * 5 + [1.5e-2] * 45).began == 36, before


def test_one_row_that_noise_throws_back_does_not_end_the_walk() -> None:
    """Two rows do: then nothing says that the earlier ones belong to it."""
    level = [0.0] * 30 + [9e-3] * 10 + [1.5e-2] * 40
    level[35] = -1e-3
    assert evidence(level).began == 31
    level[36] = -1e-3
    assert evidence(level).began == 38


def test_shift_that_no_row_shows_began_where_its_level_began() -> None:
    """Every row is doubtful, the median is not."""
    seen = evidence([0.0] * 20 + [6e-3] * 60)
    assert (seen.onset, seen.is_off, seen.began) == (None, True, 21)


def test_nothing_began_where_nothing_is_off() -> None:
    """Noise has no onset."""
    seen = evidence([5e-4 * math.sin(row) for row in range(ROWS)])
    assert (seen.is_off, seen.began) == (False, None)


def test_began_under_heavy_noise_is_within_a_row_mostly() -> None:
    """A level of ten noise widths: the walk neither stops short nor runs on. A failure prints the seed."""
    rng = np.random.default_rng(SEED)
    noise = heavy_noise(rng, 60, ROWS, width=1e-3)
    noise[:, 30:] += 1.2e-2
    began = [evidence(row).began for row in noise]
    assert sum(first is not None and abs(first - 31) <= 1 for first in began) >= 0.9 * len(began), (SEED, began)


def test_level_that_lasts_is_not_temporary() -> None:
    """A few rows of agreement at the end are too few to say that the curves met again."""
    relative = np.zeros(ROWS)
    relative[30:76] = 0.015
    assert first_shape(relative).shape != "temporary-level"
    relative[60:] = 0
    told = first_shape(relative)
    assert told.shape == "temporary-level"
    assert "from iteration 31 to 60" in told.evidence


def test_level_that_halves_is_not_temporary() -> None:
    """The curves don't meet again."""
    relative = np.zeros(ROWS)
    relative[30:50], relative[50:] = 0.02, 0.008
    assert first_shape(relative).shape != "temporary-level"


def test_jump_in_one_quarter_is_no_slow_growth() -> None:
    """What grows does so in each quarter of the rows, and no quarter that begins anywhere holds a jump."""
    row = np.arange(ROWS)
    for since in range(12, 70, 2):
        jump = np.where(row < 5, 0, np.where(row < since, 3e-6, 2e-2) * (1 + np.sin(row) / 9))
        assert first_shape(jump).shape != "slow-growth", since
    assert first_shape(2e-2 * (row / ROWS) ** 2.5).shape == "slow-growth"


@pytest.mark.parametrize("factor", [1.01, 0.98])
def test_constant_factor_is_seen_through_the_noise_of_bfloat16(factor: float) -> None:
    """Noise of 3e-4 on every row doesn't make it another shape. A failure prints the seed."""
    noise = heavy_noise(np.random.default_rng(SEED), 10, ROWS, width=3e-4)
    told = [first_shape((1 + row) * factor - 1, is_bfloat16=True).shape for row in noise]
    assert told.count("constant-factor") >= 9, (SEED, told)


def test_what_scatters_more_than_noise_is_no_constant_factor() -> None:
    """The level of each row is another one: other weights, not another normalisation. A failure prints the seed."""
    rng = np.random.default_rng(SEED)
    told = [first_shape(0.02 * (1 + 0.4 * rng.standard_normal(ROWS)), is_bfloat16=True).shape for _ in range(10)]
    assert "constant-factor" not in told, (SEED, told)


def test_factor_and_amount_are_both_said_where_both_fit() -> None:
    """A loss that hardly moves can't tell the two apart."""
    flat = [2.0 + 1e-3 * math.sin(row) for row in range(ROWS)]
    told = compare_logs(make_log(flat), make_log([value + 0.1 for value in flat])).comparison.diagnoses[0]
    assert told.shape == "constant-factor"
    assert "constant amount of +0.1 fits as well" in told.evidence


def test_constant_change_that_begins_late_has_an_onset_to_explain() -> None:
    """A factor from iteration 11 on, not from the first row on: both are said."""
    left = make_log(printed(TREND))
    right = make_log(printed(TREND * np.where(np.arange(ROWS) < 10, 1, 1.02)))
    told = compare_logs(left, right).comparison.diagnoses
    assert [item.shape for item in told] == ["constant-factor", "late-jump"]


def test_rows_missing_is_named() -> None:
    """A hole in the middle of one log is told, with the place."""
    kept = [row for row in range(ROWS) if not 30 <= row < 50]
    left = make_log(printed(TREND))
    right = make_log([printed(TREND)[row] for row in kept], iteration=[row + 1 for row in kept])
    told = compare_logs(left, right).comparison.diagnoses
    assert [item.shape for item in told] == ["rows-missing"]


def test_pair_with_a_missing_side_can_not_be_compared() -> None:
    """Neither can one that isn't finite."""
    assert Pair(1, 2.0, 3.0).is_finite
    assert not any(Pair(1, 2.0, other).is_finite for other in (None, math.nan, math.inf))
