"""Groups of runs: medians compared, and the scatter within a group is the noise."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from lossbisect.compare import Group, Verdict, compare_groups
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import RunLog
from tests.compare.logs import FLOAT32, make_log
from tests.compare.simulate import heavy_noise, printed

SEED = 20260822
ROWS = 120
CURVE = np.linspace(10.4, 7.4, ROWS)


def runs(number: int, *, shift: float = 0.0, draw: int = 0, seeds: bool = True) -> list[RunLog]:
    """Runs of one set-up, each with its own seed and noise."""
    noise = heavy_noise(np.random.default_rng([SEED, draw]), number, ROWS, width=4e-4) + shift
    return [
        make_log(
            printed(CURVE * (1 + row)),
            path=f"run-{draw}-{index}.log",
            planned=ROWS,
            config=FLOAT32 | ({"seed": 1234 + index + 10 * draw} if seeds else {}),
        )
        for index, row in enumerate(noise)
    ]


def group(name: str, logs: Sequence[RunLog]) -> Group:
    """A group of these runs."""
    return Group(name=name, runs=tuple(logs))


def test_groups_of_one_set_up_are_the_same_and_seeds_are_no_setting() -> None:
    """The curves are the medians, and the noise is named."""
    left, right = runs(3), runs(3, draw=1)
    judgement = compare_groups(group("old", left), group("new", right))
    comparison = judgement.comparison
    assert judgement.verdict is Verdict.SAME
    assert comparison.noise.source == "4 further runs"
    assert comparison.config == ()
    assert comparison.baseline == "old (3 runs)"
    middle = np.median([log.iterations["lm_loss"].to_numpy() for log in left], axis=0)
    assert comparison.curves.frame["baseline"].to_list() == pytest.approx(middle.tolist())
    assert "does-not-repeat" not in [item.shape for item in comparison.diagnoses]


def test_shift_between_groups_is_found() -> None:
    """Far below what a single pair shows."""
    judgement = compare_groups(group("old", runs(3)), group("new", runs(3, draw=1, shift=2e-3)))
    effect = judgement.comparison.difference.effect
    assert judgement.verdict is Verdict.DIVERGED
    assert effect is not None
    assert effect.low_rel <= 2e-3 <= effect.high_rel


def test_nan_in_one_run_is_not_hidden_by_the_median() -> None:
    """A group with a broken run is broken."""
    right = runs(3, draw=1)
    losses = right[1].iterations["lm_loss"].to_list()
    losses[50:] = [math.nan] * (ROWS - 50)
    right[1] = make_log(losses, path="broken.log", planned=ROWS)
    judgement = compare_groups(group("old", runs(3)), group("new", right))
    assert judgement.verdict is Verdict.DIVERGED
    assert "NaN in the candidate at iteration 51" in judgement.reason


def test_run_that_was_cut_makes_its_group_undecided() -> None:
    """And it is named."""
    right = runs(3, draw=1)
    right[2] = make_log(right[2].iterations["lm_loss"].to_list()[:60], path="cut.log", planned=ROWS)
    judgement = compare_groups(group("old", runs(3)), group("new", right))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "candidate cut.log ends at iteration 60 of the 120" in judgement.reason


def test_one_run_each_shows_no_scatter() -> None:
    """It says what to do instead."""
    with pytest.raises(AlignmentError, match="compare the two logs without --group"):
        compare_groups(group("old", runs(1)), group("new", runs(1, draw=1)))


def test_group_against_a_single_run() -> None:
    """The scatter of one side is enough."""
    judgement = compare_groups(group("old", runs(4)), group("new", runs(1, draw=1)))
    assert judgement.verdict is Verdict.SAME
    assert judgement.comparison.noise.source == "3 further runs"
