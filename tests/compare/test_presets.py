"""The checks of other projects, with what they let pass."""

import math

import pytest

from lossbisect.compare import Verdict, compare_logs
from lossbisect.compare.presets import apply_preset, bridge, megatron_lm, torchtitan
from tests.compare.logs import make_log

BASE = {step: 10.0 - 0.05 * step for step in range(1, 101)}


def moved(by: float, steps: int = 100) -> dict[int, float | None]:
    """The base curve, relatively higher in its last iterations."""
    return {step: value * (1 + by * (step > 100 - steps)) for step, value in BASE.items()}


@pytest.mark.parametrize(("by", "steps", "passes"), [(0.049, 100, True), (0.051, 100, False), (9.0, 1, True)])
def test_megatron_lm_forgives_5_percent_and_one_iteration(by: float, steps: int, passes: bool) -> None:
    """Of a hundred iterations one may be anything."""
    assert megatron_lm(BASE, moved(by, steps)).passes is passes


def test_megatron_lm_takes_a_missing_value_for_infinite() -> None:
    """Two holes are one too many, and a hole on both sides is equal."""
    hole: dict[int, float | None] = {**BASE, 5: None, 6: math.nan}
    assert not megatron_lm(BASE, hole).passes
    assert megatron_lm(hole, hole).passes


def test_megatron_lm_allows_the_number_of_zeros_more() -> None:
    """20 %."""
    assert megatron_lm(BASE, moved(0.19), "num_zeros").passes


@pytest.mark.parametrize(("by", "passes"), [(0.029, True), (0.031, False)])
def test_bridge_fails_by_the_final_loss(by: float, passes: bool) -> None:
    """3 % is its finest gate; the rows may be off by 10 %."""
    assert bridge(BASE, moved(by)).passes is passes


def test_bridge_pairs_by_position_so_a_nan_passes() -> None:
    """As it does there: the row without a loss vanishes, and all later ones move up by one."""
    broken: dict[int, float | None] = {**BASE, 50: math.nan}
    assert bridge(BASE, broken).passes


def test_torchtitan_wants_equality_at_the_same_iterations() -> None:
    """A last digit or a missing iteration fails it."""
    assert torchtitan(BASE, dict(BASE)).passes
    assert not torchtitan(BASE, {**BASE, 7: BASE[7] + 1e-9}).passes
    assert not torchtitan(BASE, {step: value for step, value in BASE.items() if step < 100}).passes


def test_unknown_preset_is_a_wrong_argument() -> None:
    """A typing error is no rule."""
    with pytest.raises(ValueError, match="is none of megatron-lm, bridge, torchtitan"):
        apply_preset("megatron", "lm_loss", BASE, BASE)


def test_rule_decides_and_is_quoted() -> None:
    """2 % off: green in Megatron-LM's and Bridge's CI, red in torchtitan's."""
    base = list(BASE.values())
    logs = make_log(base), make_log([value * 1.02 for value in base])
    verdicts = {name: compare_logs(*logs, tolerance=name).verdict for name in ("megatron-lm", "bridge", "torchtitan")}
    assert verdicts == {
        "megatron-lm": Verdict.SAME,
        "bridge": Verdict.SAME,
        "torchtitan": Verdict.DIVERGED,
    }
    assert compare_logs(*logs, tolerance="bridge").reason.startswith("the rule of bridge passes: correlation 1.0000")


def test_nan_that_a_rule_lets_pass_is_not_called_the_same() -> None:
    """The rule is quoted, and the hole in it named."""
    base = list(BASE.values())
    judgement = compare_logs(make_log(base), make_log([*base[:49], math.nan, *base[50:]]), tolerance="bridge")
    assert judgement.verdict is Verdict.UNDECIDED
    assert "is NaN in the candidate at iteration 50" in judgement.reason
    assert "which it can't see" in judgement.reason
