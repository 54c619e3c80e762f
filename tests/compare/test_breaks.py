"""Values that are no numbers, columns that training follows, and stretches without a row."""

import math

import pytest

from lossbisect.compare import Verdict, compare_logs, within
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import ConfigValue, RunLog
from tests.compare.logs import make_log

BASE = [10.4 - 0.05 * row for row in range(20)]


@pytest.mark.parametrize(
    ("ours", "theirs", "name"),
    [(math.inf, -math.inf, "is -inf"), (math.inf, math.nan, "is NaN"), (math.nan, math.inf, "is inf")],
)
def test_sides_that_break_differently_are_named_by_what_they_became(ours: float, theirs: float, name: str) -> None:
    """Neither is a number, so no size of a difference is told."""
    left, right = (make_log([*BASE[:10], *[value] * 10]) for value in (ours, theirs))
    judgement = compare_logs(left, right)
    assert judgement.verdict is Verdict.DIVERGED
    assert judgement.comparison.diagnoses[0].shape == "nan"
    assert f"{name} in the candidate at iteration 11" in judgement.reason
    assert "relative" not in judgement.reason


def test_sides_that_break_alike_have_no_diagnosis() -> None:
    """Both NaN, both infinite: nothing parts them."""
    for value in (math.inf, math.nan):
        log = make_log([*BASE[:10], *[value] * 10])
        assert compare_logs(log, log).comparison.diagnoses == ()


ROWS = range(1, 21)


@pytest.mark.parametrize(
    ("left", "right", "shape", "told"),
    [
        (
            make_log(BASE, consumed_samples=[8 * row for row in ROWS]),
            make_log(BASE, consumed_samples=[16 * row for row in ROWS]),
            "other-samples",
            "consumed samples differ",
        ),
        (
            make_log(BASE, learning_rate=[1e-5 * row for row in ROWS]),
            make_log(BASE, learning_rate=[2e-5 * row for row in ROWS]),
            "other-schedule",
            "learning rate differs",
        ),
    ],
)
def test_other_column_beside_equal_losses_is_told_with_the_same(
    left: RunLog, right: RunLog, shape: str, told: str
) -> None:
    """Equal to the last digit, so the training was; the sentence still says what isn't equal."""
    judgement = compare_logs(left, right)
    assert judgement.verdict is Verdict.SAME
    assert told in judgement.reason
    assert [item.shape for item in judgement.comparison.diagnoses] == [shape]
    assert "the loss shows nothing of it" in judgement.comparison.diagnoses[0].meaning


@pytest.mark.parametrize(
    ("first", "last", "asked"),
    [(100, None, "from 100 on"), (100, 120, "from 100 to 120")],
)
def test_stretch_without_a_row_says_what_there_is(first: int, last: int | None, asked: str) -> None:
    """Not that the log has no loss."""
    with pytest.raises(AlignmentError, match=f"no iteration {asked}; it has iterations 1 to 20"):
        within(make_log(BASE), first, last)


def test_intervals_that_never_meet_are_named() -> None:
    """Rows at 7, 14, 21 and at 10, 20, 30: the log interval is the reason, not another training."""
    seven = make_log(BASE[:3], window=7, iteration=[7, 14, 21])
    ten = make_log(BASE[:3], window=10, iteration=[10, 20, 30])
    with pytest.raises(AlignmentError, match="One logs every 7 iterations and the other every 10"):
        compare_logs(seven, ten)


def test_loss_that_is_off_in_no_single_row_is_not_called_logging() -> None:
    """A shift of 3e-3 is news under bfloat16 though no row is sure; an auxiliary loss beside it isn't the only one."""
    config: dict[str, ConfigValue] = {"params_dtype": "torch.bfloat16", "bf16": True, "fp16": False}
    left = make_log(BASE, config=config, load_balancing_loss=[1.0] * 20)
    right = make_log([value * 1.003 for value in BASE], config=config, load_balancing_loss=[2.0] * 20)
    judgement = compare_logs(left, right)
    assert judgement.verdict is Verdict.DIVERGED
    assert "logging-only" not in [item.shape for item in judgement.comparison.diagnoses]
