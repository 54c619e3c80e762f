"""Two logs laid over each other."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.compare.align import align, metrics
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import Failure, LossKind, Note
from tests.compare.logs import make_log


def test_rows_are_matched_by_iteration_and_not_by_position() -> None:
    """A candidate that starts at iteration 3 is compared from there, and the rows it lacks are named."""
    curves = align(make_log([5.0, 4.0, 3.0, 2.0]), make_log([3.0, 2.0], first=3), "lm_loss")
    assert curves.frame["iteration"].to_list() == [3, 4]
    assert curves.frame["delta"].to_list() == [0.0, 0.0]
    assert curves.dropped == ("baseline: 2 rows without a row in the candidate (iterations 1 to 2).",)


def test_last_attempt_wins_where_an_iteration_repeats() -> None:
    """After a resume printed iterations 2 and 3 again, those rows count."""
    resumed = make_log([5.0, 4.0, 3.0, 4.5, 3.5], iteration=[1, 2, 3, 2, 3], attempt=[0, 0, 0, 1, 1])
    curves = align(make_log([5.0, 4.5, 3.5]), resumed, "lm_loss")
    assert curves.frame["candidate"].to_list() == [5.0, 4.5, 3.5]
    assert "2 rows printed again later" in curves.dropped[0]


def test_cut_row_counts_only_where_the_value_is_whole() -> None:
    """A row cut after the loss keeps its loss; a row cut before it is dropped, and never stands for a NaN."""
    cut = make_log([5.0, 4.0, None], is_complete=[True, False, False])
    curves = align(make_log([5.0, 4.0, 3.0]), cut, "lm_loss")
    assert curves.frame["candidate"].to_list() == [5.0, 4.0]
    assert any("cut before the value of lm_loss (iteration 3)" in sentence for sentence in curves.dropped)


def test_cut_row_does_not_hide_an_earlier_whole_one() -> None:
    """Where the last attempt's row was cut before the loss, the earlier attempt's whole row counts."""
    log = make_log([5.0, 4.0, None], iteration=[1, 2, 2], attempt=[0, 0, 1], is_complete=[True, True, False])
    assert align(make_log([5.0, 4.0]), log, "lm_loss").frame["candidate"].to_list() == [5.0, 4.0]


def test_no_common_iteration_is_an_error_that_says_what_each_side_has() -> None:
    """Two logs of different stretches can't be compared."""
    with pytest.raises(AlignmentError, match=r"iterations 1 to 3, .* has iterations 7 to 9"):
        align(make_log([1.0, 1.0, 1.0]), make_log([1.0, 1.0, 1.0], first=7), "lm_loss")


def test_logs_without_a_row_have_no_metric_at_all() -> None:
    """Two empty logs are an error and not a match."""
    with pytest.raises(AlignmentError, match="Neither log"):
        align(make_log([]), make_log([]), "lm_loss")


def test_unknown_metric_names_those_there_are() -> None:
    """Whoever mistypes a metric reads what each side has."""
    log = make_log([5.0, 4.0], grad_norm=[1.0, 2.0])
    with pytest.raises(AlignmentError, match=r"Neither log has a value of 'loss'.*baseline has lm_loss, grad_norm"):
        align(log, log, "loss")


def test_metric_of_one_side_only_is_an_error_that_names_the_side() -> None:
    """A column of nulls is no metric."""
    with pytest.raises(AlignmentError, match="The candidate has no value of 'lm_loss'"):
        align(make_log([5.0, 4.0]), make_log([None, None], grad_norm=[1.0, 1.0]), "lm_loss")


def test_run_that_failed_before_its_first_row_says_so() -> None:
    """No value, because nothing was trained: the reason is more use than the list of columns."""
    crash = Failure(kind="import-error", line_no=3, text="No module named 'megatron'")
    with pytest.raises(AlignmentError, match=r"The candidate failed \(import-error: No module named 'megatron'\)"):
        align(make_log([5.0]), make_log([], failure=crash), "lm_loss")


def test_finer_side_is_averaged_over_the_windows_of_the_coarser() -> None:
    """Two rows of five iterations make up one of ten, each by what advanced in it; the grad norm stays its own."""
    every_ten = make_log([5.0, 4.0], iteration=[10, 20], window=10, grad_norm=[1.0, 2.0])
    every_five = make_log(
        [5.2, 5.0, 4.3, 4.0],
        iteration=[5, 10, 15, 20],
        window=[5, 5, 1, 4],
        number_of_skipped_iterations=[0, 0, 4, 1],
        grad_norm=[9.0, 1.0, 9.0, 2.0],
    )
    curves = align(every_ten, every_five, "lm_loss")
    assert curves.frame["candidate"].to_list() == pytest.approx([5.1, (4.3 + 4 * 4.0) / 5])
    assert curves.frame["window"].to_list() == [10, 10]
    assert "candidate: 4 rows averaged over the windows of the baseline" in curves.dropped[0]
    mirrored = align(every_five, every_ten, "lm_loss").frame
    assert mirrored["baseline"].to_list() == curves.frame["candidate"].to_list()
    assert align(every_ten, every_five, "grad_norm").frame["candidate"].to_list() == [1.0, 2.0]


def test_nan_and_absent_losses_stay_in_an_averaged_window() -> None:
    """A mean over them is NaN or missing, never a mean of the rest; a skipped iteration weighs nothing."""
    every_two = make_log([5.0, 4.0, 3.0], iteration=[2, 4, 6], window=2)
    one_by_one = make_log(
        [5.0, math.nan, None, 4.0, None, 3.0],
        window=[1, 1, 1, 1, 0, 1],
        number_of_skipped_iterations=[0, 0, 0, 0, 1, 0],
    )
    values = align(every_two, one_by_one, "lm_loss").frame["candidate"].to_list()
    assert math.isnan(values[0])
    assert values[1:] == [None, 3.0]


def test_windows_that_do_not_fit_are_refused() -> None:
    """Rows over 10 iterations don't make up rows over 15."""
    tens = make_log([5.0, 4.0, 3.0], iteration=[10, 20, 30], window=10)
    fifteens = make_log([5.0, 4.0], iteration=[15, 30], window=15)
    with pytest.raises(AlignmentError, match=r"mean of 10 iterations.*of 15 iterations.*same --log-interval"):
        align(tens, fifteens, "lm_loss")


def test_window_with_a_hole_is_left_out() -> None:
    """A row of the finer side is missing, so its window isn't whole; the others count."""
    tens = make_log([5.0, 4.0], iteration=[10, 20], window=10)
    fives = make_log([5.0, 4.2, 3.8], iteration=[10, 15, 20], window=5)
    curves = align(tens, fives, "lm_loss")
    assert curves.frame["iteration"].to_list() == [20]
    assert any("averaged over different numbers of iterations (iteration 10)" in text for text in curves.dropped)


def test_extra_first_row_of_a_longer_interval_makes_up_the_tenth() -> None:
    """Where a printer resets after its extra first row, that row and the next are the ten iterations."""
    left = make_log([6.0, 5.0, 4.0], iteration=[1, 10, 20], window=[1, 10, 10])
    right = make_log([6.0, 5.0, 4.0], iteration=[1, 10, 20], window=[1, 9, 10])
    frame = align(left, right, "lm_loss").frame
    assert frame["iteration"].to_list() == [1, 10, 20]
    assert frame["candidate"].to_list() == pytest.approx([6.0, 5.1, 4.0])


def test_runs_of_different_batch_sizes_are_aligned_on_their_samples() -> None:
    """Two iterations of 8 sequences are one of 16; iterations are the baseline's."""
    small = make_log([5.0, 4.8, 4.6, 4.4], consumed_samples=[8, 16, 24, 32], global_batch_size=[8] * 4)
    large = make_log([4.9, 4.5], consumed_samples=[16, 32], global_batch_size=[16] * 2)
    curves = align(small, large, "lm_loss", on="consumed_samples")
    assert curves.on == "consumed_samples"
    assert curves.frame["iteration"].to_list() == [2, 4]
    assert curves.frame["consumed_samples"].to_list() == [16, 32]
    assert curves.frame["baseline"].to_list() == pytest.approx([4.9, 4.5])


def test_log_without_samples_cannot_be_aligned_on_them() -> None:
    """It says which log, and what to do."""
    log = make_log([5.0], consumed_samples=[8], global_batch_size=[8])
    with pytest.raises(AlignmentError, match="no row says its consumed_samples"):
        align(log, make_log([5.0]), "lm_loss", on="consumed_samples")


def test_skipped_iterations_do_not_look_like_another_interval() -> None:
    """A row whose only iteration was skipped on one side is a difference between the runs: it stays."""
    skipped = make_log([5.0, None, 4.0], window=[1, 0, 1], number_of_skipped_iterations=[0, 1, 0])
    whole = make_log([5.0, 4.5, 4.0], number_of_skipped_iterations=[0, 0, 0])
    assert align(whole, skipped, "lm_loss").frame["candidate"].to_list() == [5.0, None, 4.0]


def test_full_precision_is_compared_with_a_console_log_of_interval_1() -> None:
    """A per-iteration value and a mean over one iteration are the same thing."""
    exact = make_log([5.0000001, 4.0], loss_kind=LossKind.PER_ITERATION, loss_quantum_rel=0.0, window=[None, None])  # type: ignore[list-item]
    curves = align(exact, make_log([5.0, 4.0]), "lm_loss")
    assert curves.frame.height == 2
    assert curves.frame["quantum"].to_list() == pytest.approx([2.5e-6, 2e-6])


def test_gradient_norm_needs_no_equal_interval_and_has_an_absolute_quantum() -> None:
    """It is the iteration's own value, printed with three decimals."""
    left = make_log([5.0], iteration=[10], window=10, grad_norm=[1.234])
    right = make_log([5.0], iteration=[10], window=5, grad_norm=[1.235])
    frame = align(left, right, "grad_norm").frame
    assert frame["quantum"].to_list() == pytest.approx([1e-3])


def test_repaired_second_row_is_less_precise() -> None:
    """Its value is twice one printed number less another."""
    note = Note(line_no=11, kind="row-2-mean", text="Iteration 2 was printed as a mean.")
    curves = align(make_log([10.0, 10.0]), make_log([10.0, 10.0], notes=(note,)), "lm_loss")
    assert curves.frame["quantum"].to_list() == pytest.approx([1e-5, 2e-5])
    assert curves.frame["is_repaired"].to_list() == [False, True]


def test_row_that_may_be_a_mean_is_left_out_of_the_losses() -> None:
    """Where the parser can't tell, the row proves nothing; its gradient norm is the iteration's own."""
    note = Note(line_no=11, kind="row-2-undecided", text="Iteration 2 may be a mean.")
    log = make_log([10.0, 9.9, 9.8], grad_norm=[1.0, 2.0, 3.0], notes=(note,))
    curves = align(make_log([10.0, 9.8, 9.8], grad_norm=[1.0, 2.0, 3.0]), log, "lm_loss")
    assert curves.frame["iteration"].to_list() == [1, 3]
    assert "1 row that may be a mean of two iterations (iteration 2)" in curves.dropped[0]
    assert align(log, log, "grad_norm").frame.height == 3


def test_metrics_are_those_with_a_value_losses_first() -> None:
    """Counters and empty columns are no metrics; speeds come last."""
    log = make_log(
        [5.0], grad_norm=[1.0], load_balancing_loss=[1.0], elapsed_time_per_iteration_ms=[3.0], num_zeros=[None]
    )
    assert metrics(log) == ("lm_loss", "load_balancing_loss", "grad_norm", "elapsed_time_per_iteration_ms")


@settings(deadline=None, max_examples=50)
@given(st.sets(st.integers(1, 40), min_size=1), st.sets(st.integers(1, 40), min_size=1))
def test_exactly_the_common_iterations_are_aligned(left: set[int], right: set[int]) -> None:
    """Whatever rows the two sides have, the frame holds their intersection, each value beside its own iteration."""
    one, other = (
        make_log([float(i) for i in sorted(side)], iteration=sorted(side), loss_kind=LossKind.PER_ITERATION)
        for side in (left, right)
    )
    if not left & right:
        with pytest.raises(AlignmentError):
            align(one, other, "lm_loss")
        return
    frame = align(one, other, "lm_loss").frame
    assert frame["iteration"].to_list() == sorted(left & right)
    assert frame["baseline"].to_list() == frame["candidate"].to_list() == [float(i) for i in sorted(left & right)]
