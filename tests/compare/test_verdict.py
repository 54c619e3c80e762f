"""From two logs to a verdict and its sentence."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.compare import compare_logs
from lossbisect.compare.types import Judgement, NoiseFloor, Verdict
from lossbisect.parsers.runlog import Failure, RunLog
from tests.compare.logs import FLOAT32, make_log

BASE = [10.3774, 10.37346, 10.32276, 10.33152, 10.21771, 10.24061]


def moved(by: float, since: int = 3) -> list[float]:
    """The base curve, relatively higher from an iteration on."""
    return [value * (1 + by * (row + 1 >= since)) for row, value in enumerate(BASE)]


def judged(candidate: Sequence[float | None], *, tolerance: float | None = None) -> Judgement:
    """The verdict on a curve against the base curve."""
    return compare_logs(make_log(BASE), make_log(candidate), tolerance=tolerance)


def test_identical_logs_are_the_same() -> None:
    """And it says so in digits, not in noise."""
    judgement = judged(list(BASE))
    assert judgement.verdict is Verdict.SAME
    assert judgement.reason == "lm loss is identical in every digit, 6 iterations compared."


def test_difference_within_rounding_is_the_same_with_its_size() -> None:
    """The largest difference and its place are told."""
    judgement = judged(moved(1.1e-5, since=6))
    assert judgement.verdict is Verdict.SAME
    assert judgement.reason == (
        "lm loss is the same within float32 rounding: largest relative difference 1.1e-5 at iteration 6, "
        "6 iterations compared."
    )


def test_divergence_names_its_first_iteration_and_what_was_before() -> None:
    """Equal iterations before the onset rule out initial weights and data."""
    judgement = judged(moved(1e-2))
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.reason.startswith("lm loss diverges from iteration 3 (iterations 1 and 2 equal), ")


def test_difference_from_the_start_shows_both_first_values() -> None:
    """Then the initial weights, the data or the forward pass differ."""
    judgement = judged(moved(1e-2, since=1))
    assert "differs from iteration 1 on, the first one compared (10.37740 vs 10.48117)" in judgement.reason


def test_cause_is_the_setting_that_can_explain_it() -> None:
    """Adam's epsilon explains an onset at iteration 3; at iteration 1 the optimizer hasn't stepped yet."""
    for since, cause in ((3, "adam_eps differs: 1e-08 vs 1e-05"), (1, "tensor_model_parallel_size differs: 1 vs 2")):
        left = make_log(
            BASE, config=FLOAT32 | {"adam_eps": 1e-08, "optimizer": "adam", "tensor_model_parallel_size": 1}
        )
        right_config = FLOAT32 | {"adam_eps": 1e-05, "optimizer": "adam", "tensor_model_parallel_size": 2}
        judgement = compare_logs(left, make_log(moved(1e-2, since=since), config=right_config))
        assert f"; {cause}" in judgement.reason
        assert judgement.comparison.config[0].field in cause


def test_setting_without_an_effect_so_far_is_told_with_the_same() -> None:
    """Equal curves of unequal settings deserve a word."""
    judgement = compare_logs(make_log(BASE, config=FLOAT32 | {"seed": 1}), make_log(BASE, config=FLOAT32 | {"seed": 2}))
    assert judgement.verdict is Verdict.SAME
    assert "seed differs: 1 vs 2, with no effect beyond the noise so far" in judgement.reason


def test_between_noise_and_real_nothing_is_claimed() -> None:
    """And the sentence says what would decide it."""
    judgement = judged(moved(5e-5))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "from iteration 3 on" in judgement.reason
    assert "--tolerance" in judgement.reason


def test_exact_takes_a_last_digit_for_a_difference() -> None:
    """Equality to the last printed digit was asked for."""
    assert judged([*BASE[:5], 10.24062]).verdict is Verdict.SAME
    assert judged([*BASE[:5], 10.24062], tolerance=0).verdict is Verdict.DIVERGED
    assert judged(list(BASE), tolerance=0).verdict is Verdict.SAME


@pytest.mark.parametrize(("rtol", "verdict"), [(1e-3, Verdict.SAME), (1e-5, Verdict.DIVERGED)])
def test_tolerance_decides_alone(rtol: float, verdict: Verdict) -> None:
    """With a tolerance there is nothing between the same and diverged."""
    assert judged(moved(5e-5), tolerance=rtol).verdict is verdict


def test_measured_floor_is_taken_as_it_is() -> None:
    """Whoever repeated a run knows better than a default."""
    floor = NoiseFloor(source="repeats", surely_noise_rel=1e-4, surely_real_rel=2e-4)
    judgement = compare_logs(make_log(BASE), make_log(moved(5e-5)), tolerance=floor)
    assert judgement.verdict is Verdict.SAME
    assert "within repeats" in judgement.reason


def test_nan_of_one_side_is_a_divergence_and_is_called_nan() -> None:
    """It passes no rule for small differences."""
    judgement = judged([*BASE[:4], math.nan, math.nan])
    assert judgement.verdict is Verdict.DIVERGED
    assert (
        "is NaN in the candidate at iteration 5, 10.21771 in the baseline (iterations 1 to 4 equal)" in judgement.reason
    )


def test_missing_value_of_one_side_is_undecided() -> None:
    """A hole in one log is neither a proof nor nothing."""
    judgement = judged([*BASE[:4], None, BASE[5]])
    assert judgement.verdict is Verdict.UNDECIDED
    assert "is missing in the candidate at iteration 5" in judgement.reason


def test_nothing_in_common_to_compare_is_undecided() -> None:
    """All-NaN curves agree in nothing that training means."""
    nothing: list[float | None] = [math.nan] * 3
    assert compare_logs(make_log(nothing), make_log(nothing)).verdict is Verdict.UNDECIDED


def test_spike_that_returns_is_undecided() -> None:
    """Training doesn't return to the same digits."""
    judgement = judged([*BASE[:3], 11.0, *BASE[4:]])
    assert judgement.verdict is Verdict.UNDECIDED
    assert "differs at iteration 4 (10.33152 vs 11.00000) but returns" in judgement.reason


def test_two_iterations_are_not_enough_for_the_same() -> None:
    """They show the initial weights and the forward pass only."""
    judgement = compare_logs(make_log(BASE[:2]), make_log(BASE[:2]))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "3 are needed" in judgement.reason


def test_one_row_that_averages_ten_iterations_is_enough() -> None:
    """What counts is how far training went, not how many rows were printed."""
    row = make_log([5.0], iteration=[10], window=10)
    assert compare_logs(row, row).verdict is Verdict.SAME


def test_candidate_that_crashed_early_is_not_the_same() -> None:
    """Green would hide the crash."""
    crash = Failure(kind="cuda-oom", line_no=99, text="CUDA out of memory")
    judgement = compare_logs(make_log(BASE), make_log(BASE[:4], failure=crash))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "the candidate failed after iteration 4 of 6 (cuda-oom: CUDA out of memory)" in judgement.reason


def test_failure_after_the_last_iteration_is_a_note() -> None:
    """The rows are all there."""
    crash = Failure(kind="traceback", line_no=99, text="EOFError")
    judgement = compare_logs(make_log(BASE, failure=crash), make_log(BASE, path="other.log"))
    assert judgement.verdict is Verdict.SAME
    assert judgement.comparison.notes == ("baseline: failed after iteration 6, line 99 (traceback): EOFError",)


def test_equal_losses_with_another_gradient_norm_are_not_the_same() -> None:
    """Adam hides a factor in the gradient; the second witness doesn't."""
    left = make_log(BASE, grad_norm=[0.84, 0.868, 0.83, 0.642, 0.737, 0.563])
    right = make_log(BASE, grad_norm=[1.68, 1.736, 1.66, 1.284, 1.474, 1.126])
    judgement = compare_logs(left, right)
    assert judgement.verdict is Verdict.UNDECIDED
    assert "grad norm differs from iteration 1 on (by up to 100 % relative)" in judgement.reason


def test_last_digit_of_the_gradient_norm_is_no_witness() -> None:
    """It is printed with three decimals: 0.001 is its quantum on two sides."""
    left = make_log(BASE, grad_norm=[0.84, 0.868, 0.83, 0.642, 0.737, 0.563])
    right = make_log(BASE, grad_norm=[0.841, 0.867, 0.83, 0.642, 0.737, 0.563])
    assert compare_logs(left, right).verdict is Verdict.SAME


def test_other_loss_alone_is_called_logging() -> None:
    """An auxiliary loss that moved while training didn't is reported in another way."""
    left, right = (make_log(BASE, load_balancing_loss=[factor] * 6) for factor in (1.0, 2.0))
    judgement = compare_logs(left, right)
    assert judgement.verdict is Verdict.SAME
    assert "load balancing loss differs from iteration 1 on" in judgement.reason
    assert "only its logging" in judgement.reason


def test_throughput_is_no_witness() -> None:
    """A faster machine trains the same."""
    left, right = (make_log(BASE, samples_per_second=[speed] * 6) for speed in (10.0, 20.0))
    assert compare_logs(left, right).comparison.witnesses == {}


def test_same_file_twice_is_noted() -> None:
    """A slip of the hand, most of the time."""
    log = make_log(BASE)
    assert "baseline and candidate are the same file." in compare_logs(log, log).comparison.notes


def test_other_metric_can_be_the_judge() -> None:
    """Then the loss is a witness."""
    left = make_log(BASE, grad_norm=[1.0] * 6)
    right = make_log(BASE, grad_norm=[1.0, 1.0, 1.2, 1.2, 1.2, 1.2])
    judgement = compare_logs(left, right, metric="grad_norm")
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.comparison.witnesses["lm_loss"].is_identical


def _swapped(left: RunLog, right: RunLog) -> tuple[Judgement, Judgement]:
    return compare_logs(left, right), compare_logs(right, left)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(0.5, 12)), min_size=6, max_size=6))
def test_verdict_does_not_depend_on_the_roles(values: list[float | None]) -> None:
    """Swapping the two logs swaps the words and not the verdict."""
    if any(value is not None for value in values):
        one, other = _swapped(make_log(BASE), make_log(values))
        assert one.verdict is other.verdict


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 5), st.sampled_from([math.nan, math.inf, None]))
def test_one_broken_row_is_never_the_same(at: int, value: float | None) -> None:
    """Wherever it stands."""
    broken: list[float | None] = [*BASE[:at], value, *BASE[at + 1 :]]
    assert judged(broken).verdict is not Verdict.SAME


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3))
def test_shifted_rows_are_never_the_same(by: int) -> None:
    """Values zipped to the wrong iterations are found."""
    curve = [value - 0.1 * row for row, value in enumerate([*BASE, *BASE])]
    assert compare_logs(make_log(curve[:-by]), make_log(curve[by:])).verdict is Verdict.DIVERGED
