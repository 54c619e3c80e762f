"""The shape of a difference, one made-up pair of curves for each."""

import math
import random
from functools import partial

import numpy as np
import pytest

from lossbisect.compare import Repeats, Verdict, compare_logs
from lossbisect.compare.types import Diagnosis
from lossbisect.parsers.runlog import ConfigValue, Failure, RunLog
from tests.compare.logs import FLOAT32, make_log
from tests.compare.simulate import heavy_noise, printed

ROWS = 40
_RNG = random.Random(20260822)
BASE = [10.4 - 0.05 * row + _RNG.gauss(0, 0.03) for row in range(ROWS)]
GRADIENT = [round(1.5 + 0.3 * math.sin(row) + _RNG.gauss(0, 0.1), 3) for row in range(ROWS)]


def found(left: RunLog, right: RunLog) -> tuple[Diagnosis, ...]:
    """What is said about a pair; every diagnosis has its evidence and what to check next."""
    diagnoses = compare_logs(left, right).comparison.diagnoses
    assert all(item.meaning and item.evidence and item.check_next for item in diagnoses)
    return diagnoses


def shapes(left: RunLog, right: RunLog) -> list[str]:
    """Their names, the most telling first."""
    return [item.shape for item in found(left, right)]


base = partial(make_log, BASE, grad_norm=GRADIENT)
"""The baseline with a gradient norm; other columns as they are given."""


def moved(by: float, since: int = 1, until: int = ROWS) -> list[float]:
    """The base curve, relatively higher in some iterations."""
    return [value * (1 + by * (since <= row + 1 <= until)) for row, value in enumerate(BASE)]


def test_equal_curves_have_no_diagnosis() -> None:
    """There is nothing to explain."""
    assert shapes(base(), base()) == []


@pytest.mark.parametrize(
    ("field", "ours", "theirs"),
    [
        ("seq_length", 64, 128),
        ("global_batch_size", 8, 16),
        ("padded_vocab_size", 32000, 32128),
        ("hidden_dropout", 0, 0.1),
    ],
)
def test_other_task_is_told_first(field: str, ours: ConfigValue, theirs: ConfigValue) -> None:
    """A gate: such runs are not comparable."""
    left, right = (
        make_log(side, config=FLOAT32 | {field: value}) for side, value in ((BASE, ours), (moved(0.01), theirs))
    )
    assert shapes(left, right)[0] == "not-comparable"


def test_other_learning_rate_is_told_first() -> None:
    """Before anything about the loss."""
    rate = [1e-4 * (row + 1) for row in range(ROWS)]
    diagnoses = found(base(learning_rate=rate), make_log(moved(0.01, 3), learning_rate=[*rate[:5], *rate[4:-1]]))
    assert diagnoses[0].shape == "other-schedule"
    assert "At iteration 6" in diagnoses[0].evidence


def test_other_consumed_samples_are_told_first() -> None:
    """Another batch size shows in that column."""
    left = base(consumed_samples=[8 * (row + 1) for row in range(ROWS)])
    right = make_log(moved(0.01), consumed_samples=[16 * (row + 1) for row in range(ROWS)])
    assert shapes(left, right)[0] == "other-samples"


def test_first_loss_far_off_needs_no_bisect() -> None:
    """7.5 where 2.1 is due; the course after it means nothing."""
    left = make_log([2.1 - 0.01 * row for row in range(20)])
    right = make_log([7.5 - 0.1 * row for row in range(20)])
    assert shapes(left, right) == ["first-loss-far-off"]


def test_nan_on_one_side() -> None:
    """With the grad norm of that iteration."""
    broken = [*BASE[:9], *[math.nan] * (ROWS - 9)]
    gradient = [*GRADIENT[:9], *[math.nan] * (ROWS - 9)]
    diagnoses = found(base(), make_log(broken, grad_norm=gradient))
    assert diagnoses[0].shape == "nan"
    assert "Iteration 10" in diagnoses[0].evidence
    assert "against nan" in diagnoses[0].evidence


def test_nan_to_the_end_after_small_differences() -> None:
    """No row is left to measure a growth on."""
    broken = [*(value * (1 + 1e-6 * row) for row, value in enumerate(BASE[:20])), *[math.nan] * 20]
    assert shapes(base(), make_log(broken, grad_norm=GRADIENT)) == ["nan"]


def test_absent_loss() -> None:
    """The printer left it out: NaN, negative or skipped; never silently passed."""
    absent: list[float | None] = [*BASE[:9], None, *BASE[10:]]
    judgement = compare_logs(base(), make_log(absent, grad_norm=GRADIENT))
    assert judgement.comparison.diagnoses[0].shape == "loss-absent"
    assert judgement.verdict is not Verdict.SAME


def test_cut_file() -> None:
    """One side ends early, with or without a message."""
    crash = Failure(kind="cuda-oom", line_no=99, text="CUDA out of memory")
    assert shapes(base(), make_log(BASE[:20], grad_norm=GRADIENT[:20], planned=ROWS)) == ["cut-short"]
    assert shapes(base(), make_log(BASE[:20], grad_norm=GRADIENT[:20], planned=20)) == []
    diagnoses = found(base(), make_log(BASE[:20], grad_norm=GRADIENT[:20], failure=crash))
    assert "CUDA out of memory" in diagnoses[0].evidence


def test_row_2_mean() -> None:
    """The second row is the mean of the first two."""
    printed = [BASE[0], (BASE[0] + BASE[1]) / 2, *BASE[2:]]
    assert shapes(base(), make_log(printed, grad_norm=GRADIENT)) == ["row-2-mean"]


def test_last_digit() -> None:
    """A printing artefact."""
    printed = [float(f"{value:.6E}") for value in BASE]
    other = [value + 1e-6 * (row == 30) for row, value in enumerate(printed)]
    assert shapes(make_log(printed), make_log(other)) == ["last-digit"]


@pytest.mark.parametrize("lag", [1, -1])
def test_row_shift(lag: int) -> None:
    """The same curve, an iteration later or earlier."""
    shifted = [BASE[0], *BASE[:-1]] if lag == 1 else [*BASE[1:], BASE[-1]]
    judgement = compare_logs(make_log(BASE), make_log(shifted))
    assert judgement.comparison.diagnoses[0].shape == "row-shift"
    assert judgement.verdict is Verdict.DIVERGED


def test_row_shift_of_a_short_log_whose_second_row_is_a_mean() -> None:
    """Ten rows of Megatron-LM against ten from the second iteration on: both print a mean, so two of nine don't fit."""
    first, later = ([own[0], (own[0] + own[1]) / 2, *own[2:]] for own in (BASE[:10], BASE[1:11]))
    assert "row-shift" in shapes(make_log(first), make_log(later))


def test_differs_at_iteration_1() -> None:
    """Initial weights, data order, forward pass or vocabulary padding."""
    other = [value * (1 + 0.01 * math.cos(row)) for row, value in enumerate(BASE)]
    assert shapes(make_log(BASE), make_log(other)) == ["differs-at-1"]


@pytest.mark.parametrize("onset", [2, 3])
def test_equal_at_first_then_different_is_gradient_or_optimizer(onset: int) -> None:
    """The first update, or with a warm-up from 0 the second, shows it."""
    other = [value * (1 + 1e-3 * (row + 1 - onset + 1) * (row + 1 >= onset)) for row, value in enumerate(BASE)]
    assert "gradient-or-optimizer" in shapes(base(), make_log(other, grad_norm=GRADIENT))


def test_late_jump_names_the_end_of_the_warm_up() -> None:
    """Equal for long, then a jump."""
    config = FLOAT32 | {"lr_warmup_iters": 15}
    other = [value * (1 + 0.01 * math.cos(row) * (row >= 15)) for row, value in enumerate(BASE)]
    diagnoses = found(make_log(BASE, config=config), make_log(other, config=config))
    assert diagnoses[0].shape == "late-jump"
    assert "warm-up ends at iteration 15" in diagnoses[0].evidence


def test_jump_that_comes_with_other_skipped_iterations() -> None:
    """float16's loss scale explains it."""
    other = [value * (1 + 0.01 * math.cos(row) * (row >= 15)) for row, value in enumerate(BASE)]
    left = make_log(BASE, number_of_skipped_iterations=[0] * ROWS)
    right = make_log(other, number_of_skipped_iterations=[0] * ROWS)
    right_skips = right.iterations["number_of_skipped_iterations"].to_list()
    right_skips[14] = 1
    window = [1] * ROWS
    window[14] = 0
    skipped = make_log(other, number_of_skipped_iterations=right_skips, window=window)
    assert "other iterations are skipped, first at 15" in found(left, skipped)[0].evidence


def test_slow_growth() -> None:
    """First in the last digits, beyond the noise much later."""
    other = [value * (1 + 2e-7 * row**2.5) for row, value in enumerate(BASE)]
    assert shapes(make_log(BASE), make_log(other)) == ["slow-growth"]


def test_constant_factor() -> None:
    """Another normalisation of the loss."""
    diagnoses = found(make_log(BASE), make_log([value * 1.1 for value in BASE]))
    assert diagnoses[0].shape == "constant-factor"
    assert "1.1 times" in diagnoses[0].evidence


def test_constant_offset() -> None:
    """An auxiliary loss is added."""
    diagnoses = found(make_log(BASE), make_log([value + 0.01 for value in BASE]))
    assert diagnoses[0].shape == "constant-offset"


@pytest.mark.parametrize(
    ("factor", "settings", "name"),
    [
        (2.0, {}, "2 to the power of 1"),
        (0.25, {}, "2 to the power of -2"),
        (3.0, {"tensor_model_parallel_size": 3}, "tensor model parallel size"),
        (3**0.5, {"tensor_model_parallel_size": 3}, "root of the tensor model parallel size"),
        (6.0, {"global_batch_size": 48, "micro_batch_size": 4, "data_parallel_size": 2}, "number of microbatches"),
    ],
)
def test_gradient_norm_off_by_a_factor(factor: float, settings: dict[str, ConfigValue], name: str) -> None:
    """The ratio is named; the loss is the same since Adam hides it."""
    config = FLOAT32 | settings
    left = make_log(BASE, grad_norm=GRADIENT, config=config)
    right = make_log(BASE, grad_norm=[round(value * factor, 3) for value in GRADIENT], config=config)
    judgement = compare_logs(left, right)
    shape, first = judgement.comparison.diagnoses[0].shape, judgement.comparison.diagnoses[0]
    assert (shape, judgement.verdict) == ("gradient-factor", Verdict.UNDECIDED)
    assert name in first.evidence


def test_gradient_norm_differs_before_the_loss() -> None:
    """The backward pass alone."""
    gradient = [round(value * (1 + 0.1 * math.sin(3 * row)), 3) for row, value in enumerate(GRADIENT)]
    gradient[0] = round(GRADIENT[0] * 1.08, 3)
    other = [value * (1 + 1e-3 * math.cos(row) * (row >= 2)) for row, value in enumerate(BASE)]
    names = shapes(base(), make_log(other, grad_norm=gradient))
    assert names == ["gradient-first", "gradient-or-optimizer"]


@pytest.mark.parametrize("gradient", [[0.0] * ROWS, [1.5] * ROWS])
def test_gradient_norm_gone_or_too_smooth(gradient: list[float]) -> None:
    """The loss may look fine."""
    assert shapes(base(), make_log(BASE, grad_norm=gradient))[0] == "gradient-gone"


def test_jump_at_a_resume() -> None:
    """Something isn't restored."""
    attempts = [0] * 20 + [1] * 20
    other = [value * (1 + 0.01 * math.cos(row) * (row >= 20)) for row, value in enumerate(BASE)]
    assert shapes(make_log(BASE), make_log(other, attempt=attempts)) == ["jump-at-resume"]


def test_resume_overlap_is_told_and_the_last_attempt_counts() -> None:
    """Iterations 9 and 10 were printed by both attempts."""
    order = [*range(1, 11), *range(9, ROWS + 1)]
    values = [BASE[iteration - 1] for iteration in order]
    values[8] = 99.0
    log = make_log(values, iteration=order, attempt=[0] * 10 + [1] * (ROWS - 8))
    judgement = compare_logs(make_log(BASE), log)
    assert judgement.verdict is Verdict.SAME
    assert any("2 rows printed again later" in note for note in judgement.comparison.notes)


def test_level_that_ends() -> None:
    """Other samples up to an epoch's end."""
    assert shapes(make_log(BASE), make_log(moved(0.01, 11, 25))) == ["temporary-level"]


def test_spikes_shifted_by_an_iteration() -> None:
    """The same bad batch, an iteration later."""
    spiky, late = list(BASE), [value * 1.001 for value in BASE]
    spiky[16] *= 1.6
    late[17] *= 1.6
    assert "shifted-spikes" in shapes(make_log(spiky), make_log(late))


def test_other_batches_are_told_from_other_weights() -> None:
    """With the same batches two curves wobble alike, whatever else differs; with others they don't."""
    rng = random.Random(7)
    batches, others = ([rng.gauss(0, 0.03) for _ in range(ROWS)] for _ in range(2))
    trend = [10.4 - 0.02 * row for row in range(ROWS)]
    ours = make_log([value + batch for value, batch in zip(trend, batches, strict=True)])
    same = make_log(
        [
            value + batch + 0.02 * math.cos(row / 3)
            for row, (value, batch) in enumerate(zip(trend, batches, strict=True))
        ]
    )
    other = make_log([value + batch for value, batch in zip(trend, others, strict=True)])
    assert shapes(ours, same) == ["differs-at-1"]
    diagnoses = found(ours, other)
    assert diagnoses[0].shape == "other-data-order"
    assert "correlation of" in diagnoses[0].evidence


def test_auxiliary_loss_alone_is_logging_only() -> None:
    """By exactly 2, as recompute counts it."""
    auxiliary = [1.0 + 0.01 * row for row in range(ROWS)]
    diagnoses = found(base(load_balancing_loss=auxiliary), base(load_balancing_loss=[2 * value for value in auxiliary]))
    assert [item.shape for item in diagnoses] == ["logging-only"]
    assert "2 times the baseline's" in diagnoses[0].evidence


def test_jump_within_the_repeats_noise_is_a_jump() -> None:
    """A shift that no single row shows doesn't grow, and doesn't end."""
    rng = np.random.default_rng(20260822)
    noise = heavy_noise(rng, 5, 200, width=4e-4)
    noise[-1, 80:] += 2e-3
    first, *more, run = (make_log(printed(np.linspace(10.4, 7.4, 200) * (1 + row))) for row in noise)
    judgement = compare_logs(first, run, repeats=Repeats(baseline=tuple(more)))
    assert [item.shape for item in judgement.comparison.diagnoses] == ["late-jump"]


def test_set_up_that_does_not_repeat_itself_is_named() -> None:
    """The two sides lie no further apart than the repeats."""
    rng = np.random.default_rng(20260822)
    first, run, *more = (make_log(printed(8.0 * (1 + row))) for row in heavy_noise(rng, 5, 100, width=4e-4))
    judgement = compare_logs(first, run, repeats=Repeats(baseline=tuple(more)))
    assert "does-not-repeat" in [item.shape for item in judgement.comparison.diagnoses]
