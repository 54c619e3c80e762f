"""Fields of a record: open keys, odd values, and text that only looks like a row."""

import pytest

from lossbisect.parsers.records import find_records

BASE = "iteration        5/      10 | consumed samples:           40 |"
END = " number of skipped iterations:   0 | number of nan iterations:   0 |"


@pytest.mark.parametrize(
    ("field", "column", "value"),
    [
        ("elapsed time per iteration (s): 1.5", "elapsed_time_per_iteration_ms", 1500.0),
        ("elapsed time per iteration: 21399.0 ms", "elapsed_time_per_iteration_ms", 21399.0),
        ("approx flops per GPU: 9.8TFLOPS", "approx_flops_per_gpu", 9.8),
        ("packing_eff: 85.3%", "packing_eff_pct", 85.3),
        ("throughput per GPU (TFLOP/s/GPU): 210.5", "throughput_per_gpu_tflops", 210.5),
        ("toks/s/gpu: 12345", "toks_s_gpu", 12345.0),
        ("rl/pi_over_pi_old: 1.000000E+00", "rl_pi_over_pi_old", 1.0),
        ("lm loss (full): 2.000000E+00", "lm_loss_full", 2.0),
        ("lm loss: INF", "lm_loss", float("inf")),
        ("g      rad norm: 56.752", "grad_norm", 56.752),
        ("num zeros: 0", "num_zeros", 0.0),
        ("consumed tokens: 325001773056", "consumed_tokens", 325001773056.0),
        ("attempt: 3", "logged_attempt", 3.0),
    ],
)
def test_field_becomes_a_column(field: str, column: str, value: float) -> None:
    """Keys are an open set; units go into the value or the column's name; a column of our own is never overwritten."""
    (record,) = find_records(f"{BASE} {field} |{END}")
    assert record.fields[column] == value
    assert record.is_complete


def test_numbers_over_eight_digits_eat_the_padding() -> None:
    """No blank need follow the slash."""
    (record,) = find_records(f"iteration      292/95367431 | consumed samples: 1 |{END}")
    assert (record.iteration, record.total) == (292, 95367431)


def test_field_before_the_record_is_kept() -> None:
    """gpt-neox prints its samples per second in front."""
    (record,) = find_records(f" samples/sec: 61.250 | {BASE}{END}")
    assert record.fields["samples_sec"] == 61.25


def test_value_without_its_bar_is_dropped() -> None:
    """A number at the end of a cut line may be the start of a longer one."""
    (record,) = find_records(f"{BASE} lm loss: 1.03")
    assert "lm_loss" not in record.fields
    assert not record.is_complete


def test_record_ends_where_another_begins() -> None:
    """Two records on a line are two; what the first lost stays lost."""
    first, second = find_records(f"{BASE} lm loss: 1.03{BASE.replace('5/', '6/')} lm loss: 2.000000E+00 |{END}")
    assert (first.iteration, first.is_complete, "lm_loss" in first.fields) == (5, False, False)
    assert (second.iteration, second.is_complete, second.fields["lm_loss"]) == (6, True, 2.0)


def test_broken_number_marks_the_row() -> None:
    """A field that another rank wrote into is left out and the row is not whole."""
    (record,) = find_records(f"{BASE} lm loss: 1.03[Rank 0] (after 1 iterations) memory (MB) | allocated: 5.0 |")
    assert record.fields == {"consumed_samples": 40.0}
    assert not record.is_complete


def test_values_that_are_words_are_passed_over() -> None:
    """A fork's clock or duration is no number and no reason to end the row."""
    (record,) = find_records(f"{BASE} current time: 12:30:11 | elapsed: 1m 52s | lm loss: 2.000000E+00 |{END}")
    assert record.fields["lm_loss"] == 2.0
    assert record.is_complete


@pytest.mark.parametrize(
    "text",
    [
        "Training epoch 0, iteration 3/99 | lr: 1e-05 | consumed samples: 8 |",
        "iteration: 327281 / 378950 | consumed_tokens: 85.8G | lm_loss: 2.39 |",
        "iteration 5/10 of the loader | took 3.0 s |",
        "iteration 5/10 | took: 3.0 |",
        "Evaluating iter 5/10 | consumed samples: 40 |",
        "subiteration 5/10 | consumed samples: 40 |",
        "validation loss at iteration 5 | lm loss value: 2.0 |",
        "iteration 5/10",
        "iteration 5/",
        "throughput per GPU: 589.102",
    ],
)
def test_lookalikes_are_no_rows(text: str) -> None:
    """A false row is worse than a missing one."""
    assert find_records(text) == []


@pytest.mark.parametrize("text", ["iteration 5/10 |", "iteration 5/10 | consu", "iteration 5/10 | consumed samples: 4"])
def test_row_cut_in_its_first_field(text: str) -> None:
    """Only a row that was cut before its first field is kept without one, and only if the rest could be one."""
    records = find_records(text, is_ended=False)
    assert all(record.fields == {} and not record.is_complete for record in records)
    assert len(records) == (0 if text.endswith("|") else 1)
