"""What two curves say about a commit, in words."""

import math

from lossbisect.bisect.judging import judge_curves
from lossbisect.bisect.types import CommitVerdict
from lossbisect.compare.types import NoiseFloor
from tests.compare.logs import make_log

EXACT = NoiseFloor(source="bit-exact", surely_noise_rel=0.0, surely_real_rel=0.0)


def test_a_loss_that_becomes_a_number_is_told_as_that() -> None:
    """Where the baseline was NaN, a number is another curve, and the sentence says which value came in its place."""
    judged = judge_curves(make_log([8.0, math.nan]), make_log([8.0, 7.5]), metric="lm_loss", noise=EXACT)
    assert judged.verdict is CommitVerdict.BAD
    assert judged.reason == "lm loss is 7.5 at iteration 2, where it was nan"


def test_a_loss_that_becomes_nan_is_told_as_that() -> None:
    """The other way round."""
    judged = judge_curves(make_log([8.0, 7.5]), make_log([8.0, math.nan]), metric="lm_loss", noise=EXACT)
    assert judged.verdict is CommitVerdict.BAD
    assert judged.reason == "lm loss is nan at iteration 2, where it should be 7.5"
