"""The noise floor: which one is taken, and how often it is wrong."""

import random

import pytest

from lossbisect.compare import compare_logs
from lossbisect.compare.noise import NumberFormat, default_noise, number_format, parse_tolerance, tolerance_noise
from lossbisect.compare.types import Verdict
from lossbisect.parsers.runlog import ConfigValue
from tests.compare.logs import make_log

SEED = 20260822


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"params_dtype": "torch.float32", "bf16": False, "fp16": False}, NumberFormat.FLOAT32),
        ({"params_dtype": "torch.bfloat16", "bf16": True, "fp16": False}, NumberFormat.BFLOAT16),
        ({"params_dtype": "torch.float16", "bf16": False, "fp16": True}, NumberFormat.FLOAT16),
        ({"bf16": True, "fp8": "hybrid"}, NumberFormat.FLOAT8),
        ({"optimizer.bf16": True, "model.autocast_dtype": "torch.float32", "model.bf16": False}, NumberFormat.FLOAT32),
        ({"optimizer.bf16": True, "model.autocast_dtype": "torch.float32"}, NumberFormat.FLOAT32),
        ({"model.bf16": True, "model.params_dtype": "torch.bfloat16"}, NumberFormat.BFLOAT16),
        ({"optimizer.bf16": True}, NumberFormat.UNKNOWN),
        ({}, NumberFormat.UNKNOWN),
    ],
)
def test_number_format_is_the_models(config: dict[str, ConfigValue], expected: NumberFormat) -> None:
    """Bridge's optimizer.bf16 stays true in a float32 run, so the model's own settings decide."""
    assert number_format(config) is expected


def test_coarser_format_of_the_two_sets_the_floor() -> None:
    """A float32 run can't be closer to a bfloat16 run than that one is to itself."""
    floats, halves = make_log([1.0]), make_log([1.0], config={"bf16": True})
    assert default_noise(floats, floats).source == "float32 rounding"
    assert default_noise(floats, halves).source == "bfloat16 rounding"


def test_unknown_format_claims_little() -> None:
    """Without a dump, small is float32's small and large is float8's large."""
    floor = default_noise(make_log([1.0]), make_log([1.0], config={}))
    assert (floor.surely_noise_rel, floor.surely_real_rel) == (2e-5, 3e-2)


@pytest.mark.parametrize(("text", "expected"), [("auto", None), ("exact", 0.0), ("rtol=1e-5", 1e-5), ("rtol=0.5", 0.5)])
def test_tolerance_is_read(text: str, expected: float | None) -> None:
    """The three forms of the option."""
    assert parse_tolerance(text) == expected


@pytest.mark.parametrize(
    "text", ["", "rtol", "rtol=", "rtol=x", "rtol=0", "rtol=-1", "rtol=1", "rtol=nan", "atol=1e-5", "1e-5"]
)
def test_any_other_tolerance_is_refused(text: str) -> None:
    """A typing error must not become a tolerance."""
    with pytest.raises(ValueError, match="is none of auto, exact"):
        parse_tolerance(text)


@pytest.mark.parametrize("rtol", [-1e-9, 1.0, float("nan")])
def test_impossible_tolerance_is_a_wrong_argument(rtol: float) -> None:
    """A relative tolerance of all or of less than nothing is a slip."""
    with pytest.raises(ValueError, match="relative tolerance"):
        tolerance_noise(rtol)


def _curve(rng: random.Random, n_rows: int) -> list[float]:
    return [10.4 - 3.0 * row / n_rows + rng.gauss(0, 0.05) for row in range(n_rows)]


def _printed(values: list[float]) -> list[float]:
    return [float(f"{value:.6E}") for value in values]


def test_float32_band_raises_no_false_alarm() -> None:
    """Rounding as measured (1.6e-6 at most in 50 iterations, 6.2e-6 in 300), drawn three times as large, 300 pairs.

    The noise is a random walk, since a rounding difference in the weights stays there: its rows are not independent.
    """
    rng = random.Random(SEED)
    verdicts = []
    for _ in range(300):
        base, walk, noisy = _curve(rng, 100), 0.0, []
        for value in base:
            walk += rng.gauss(0, 6e-7)
            noisy.append(value * (1 + walk))
        verdicts.append(compare_logs(make_log(_printed(base)), make_log(_printed(noisy))).verdict)
    alarms = sum(verdict is not Verdict.SAME for verdict in verdicts)
    print(f"seed {SEED}: {alarms} of {len(verdicts)} equal pairs not called the same")  # noqa: T201
    assert alarms <= 6


@pytest.mark.parametrize(("shift", "least"), [(1e-3, 1.0), (3e-4, 1.0), (1.5e-4, 0.99)])
def test_float32_band_sees_a_shift(shift: float, least: float) -> None:
    """A constant shift from a random iteration in the first half on is called diverged, and dated to the iteration."""
    rng = random.Random(SEED)
    hits = 0
    for _ in range(100):
        base, onset = _curve(rng, 60), rng.randrange(1, 30)
        moved = [value * (1 + rng.gauss(0, 5e-7) + shift * (row + 1 >= onset)) for row, value in enumerate(base)]
        judgement = compare_logs(make_log(_printed(base)), make_log(_printed(moved)))
        hits += judgement.verdict is Verdict.DIVERGED and judgement.comparison.difference.first_divergent == onset
    print(f"seed {SEED}: shift {shift}: {hits} of 100 found at their iteration")  # noqa: T201
    assert hits >= 100 * least


def test_bfloat16_band_sees_a_shift_that_no_single_row_shows() -> None:
    """Rows scatter by 5e-4; the median of 40 shows a shift of 2e-3 in nearly all pairs and of nothing in none."""
    rng = random.Random(SEED)
    found = {0.0: 0, 2e-3: 0}
    for shift in found:
        for _ in range(100):
            base = _curve(rng, 40)
            moved = [value * (1 + rng.gauss(0, 5e-4) + shift) for value in base]
            logs = [make_log(_printed(side), config={"bf16": True}) for side in (base, moved)]
            found[shift] += compare_logs(*logs).verdict is Verdict.DIVERGED
    print(f"seed {SEED}: diverged by shift, of 100 each: {found}")  # noqa: T201
    assert found[0.0] == 0
    assert found[2e-3] >= 99
