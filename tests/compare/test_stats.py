"""How two aligned curves differ."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.compare.align import align
from lossbisect.compare.noise import tolerance_noise
from lossbisect.compare.stats import classify, difference
from lossbisect.compare.types import Difference, NoiseFloor
from tests.compare.logs import make_log

BAND = NoiseFloor(source="float32 rounding", surely_noise_rel=2e-5, surely_real_rel=1e-4)

losses = st.lists(st.floats(0.5, 12.0), min_size=3, max_size=40)


def between(
    baseline: Sequence[float | None], candidate: Sequence[float | None], noise: NoiseFloor = BAND
) -> Difference:
    """The difference of two full-precision curves."""
    left, right = (make_log(side, loss_quantum_rel=0.0) for side in (baseline, candidate))
    return difference(align(left, right, "lm_loss"), noise)


def test_equal_curves_are_identical() -> None:
    """No difference, and as many iterations as there are rows."""
    found = between([3.0, 2.0, 1.0], [3.0, 2.0, 1.0])
    assert found.is_identical
    assert (found.iterations, found.largest_rel, found.typical_rel) == (3, 0.0, 0.0)
    assert found.first_difference is found.first_divergent is found.first_doubtful is None


def test_first_divergent_is_where_the_difference_stays() -> None:
    """A curve that leaves at iteration 4 diverges from 4, and what was equal before is no difference."""
    found = between([5.0] * 10, [5.0] * 3 + [5.1] * 7)
    assert (found.first_difference, found.first_divergent, found.largest_at) == (4, 4, 4)
    assert found.largest_rel == pytest.approx(0.02)


def test_lone_spike_is_no_divergence() -> None:
    """One row far off between equal ones is named as a spike."""
    found = between([5.0] * 10, [5.0] * 4 + [5.5] + [5.0] * 5)
    assert found.first_divergent is None
    assert found.spikes == (5,)


def test_difference_in_the_last_row_counts() -> None:
    """It can't be known whether it would return, and noise doesn't explain it."""
    assert between([5.0] * 10, [5.0] * 9 + [5.1]).first_divergent == 10


def test_curve_that_crosses_the_other_still_diverges() -> None:
    """A difference that changes its sign is small for one row; the divergence began before."""
    found = between([5.0] * 8, [5.0, 5.1, 5.05, 5.0, 4.95, 4.9, 4.9, 4.9])
    assert found.first_divergent == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_value_that_goes_wrong_on_one_side_is_a_divergence(value: float) -> None:
    """NaN compares with nothing, so it has a state of its own."""
    found = between([5.0, 4.0, 3.0, 2.0], [5.0, 4.0, value, value])
    assert (found.first_divergent, found.only_candidate_missing, found.iterations) == (3, (3, 4), 2)


def test_nan_on_both_sides_at_the_same_iteration_is_equal() -> None:
    """Two runs that go NaN together are the same so far, by the iterations that were finite."""
    found = between([5.0, 4.0, math.nan], [5.0, 4.0, math.nan])
    assert found.is_identical
    assert found.iterations == 2


def test_value_missing_on_one_side_is_doubtful_but_proves_nothing() -> None:
    """Nothing is known about the value, so neither is it the same nor is it different."""
    found = between([5.0, 4.0, 3.0], [5.0, None, 3.0])
    assert found.first_divergent is None
    assert (found.first_doubtful, found.only_candidate_missing, found.is_identical) == (2, (2,), False)


def test_nothing_finite_in_common_is_never_identical() -> None:
    """An all-NaN pair has nothing to be identical in."""
    found = between([math.nan, math.nan], [math.nan, math.nan])
    assert not found.is_identical
    assert (found.iterations, found.largest_rel, found.typical_rel) == (0, None, None)


def test_printed_digits_explain_their_own_rounding() -> None:
    """Neighbouring seven-digit numbers may be one value; in exact mode they are two."""
    curves = align(make_log([10.32276]), make_log([10.32277]), "lm_loss")
    assert difference(curves, BAND).first_difference is None
    assert difference(curves, tolerance_noise(0)).first_divergent == 1


def test_noise_floor_grows_with_the_iterations() -> None:
    """Three times the noise at iteration 150 is noise if the floor was measured over 50 iterations."""
    growing = NoiseFloor(source="float32 rounding", surely_noise_rel=2e-5, surely_real_rel=1e-4, grows_after=50)
    base, moved = [5.0] * 150, [5.0] * 140 + [5.0 * (1 + 5e-5)] * 10
    assert between(base, moved, growing).doubtful_rows == 0
    assert between(base, moved, BAND).doubtful_rows == 10


def test_zero_baseline_gives_a_finite_relative_difference() -> None:
    """Relative to nothing means relative to the other side."""
    found = between([0.0, 0.0, 0.0], [0.0, 1e-3, 1e-3])
    assert found.largest_rel == 1.0
    assert found.first_divergent == 2


@settings(deadline=None, max_examples=50)
@given(losses, st.data())
def test_roles_do_not_change_what_is_found(values: list[float], data: st.DataObject) -> None:
    """Swapped sides diverge at the same iteration, and the missing ones change sides."""
    wild = st.one_of(st.none(), st.just(math.nan), st.floats(0.5, 12.0))
    other = [data.draw(st.one_of(st.just(value), wild)) for value in values]
    one, two = between([*values, 1.0], [*other, 1.0]), between([*other, 1.0], [*values, 1.0])
    assert (one.first_divergent, one.spikes, one.doubtful_rows) == (two.first_divergent, two.spikes, two.doubtful_rows)
    assert one.only_candidate_missing == two.only_baseline_missing


@settings(deadline=None, max_examples=50)
@given(losses, st.integers(0, 39))
def test_one_sided_nan_never_passes(values: list[float], at: int) -> None:
    """Wherever a single NaN stands, the row is doubtful and the curves aren't identical."""
    at %= len(values)
    found = between(list(values), [*values[:at], math.nan, *values[at + 1 :]])
    assert not found.is_identical
    assert found.first_doubtful == at + 1
    assert found.first_divergent == at + 1 or found.spikes == (at + 1,)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.5, 12.0), min_size=8, max_size=40, unique_by=lambda value: round(value, 1)))
def test_shifted_rows_are_found(values: list[float]) -> None:
    """A curve against itself one iteration later is doubtful in its first row."""
    found = between(values[:-1], values[1:])
    assert found.first_doubtful == 1
    assert found.first_divergent == 1


@settings(deadline=None, max_examples=50)
@given(losses)
def test_every_row_is_accounted_for(values: list[float]) -> None:
    """A row is compared, a break, or the same state on both sides; nothing is left out in silence."""
    other = [math.nan if index % 3 == 1 else value for index, value in enumerate(values)]
    left, right = (make_log(side, loss_quantum_rel=0.0) for side in (values, other))
    rows = classify(align(left, right, "lm_loss"), BAND)
    assert (rows["is_compared"] | rows["is_break"]).all()
