"""How far two runs of the same training may lie apart: the noise floor, without any repeat to measure it.

The figures and where they come from are in ``docs/method.md``. Whoever has repeats of a run passes a measured
`NoiseFloor` instead.
"""

from collections.abc import Mapping
from enum import StrEnum

from lossbisect.compare.config_diff import effective_settings
from lossbisect.compare.types import NoiseFloor
from lossbisect.parsers.runlog import ConfigValue, RunLog

__all__ = [
    "SPEED_REL",
    "NumberFormat",
    "default_noise",
    "number_format",
    "parse_tolerance",
    "speed_noise",
    "tolerance_noise",
    "witness_noise",
]


class NumberFormat(StrEnum):
    """The format that a run computes in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT8 = "float8"
    UNKNOWN = "unknown"


_FLOORS = {
    NumberFormat.FLOAT32: NoiseFloor(
        source="float32 rounding", surely_noise_rel=2e-5, surely_real_rel=1e-4, grows_after=50, surely_shift_rel=None
    ),
    NumberFormat.BFLOAT16: NoiseFloor(
        source="bfloat16 rounding", surely_noise_rel=1e-3, surely_real_rel=1e-2, surely_shift_rel=1e-3
    ),
    NumberFormat.FLOAT16: NoiseFloor(
        source="float16 rounding", surely_noise_rel=1e-3, surely_real_rel=1e-2, surely_shift_rel=1e-3
    ),
    NumberFormat.FLOAT8: NoiseFloor(source="float8 rounding", surely_noise_rel=3e-3, surely_real_rel=3e-2),
}
_UNKNOWN = NoiseFloor(
    source="rounding of an unknown number format",
    surely_noise_rel=_FLOORS[NumberFormat.FLOAT32].surely_noise_rel,
    surely_real_rel=_FLOORS[NumberFormat.FLOAT8].surely_real_rel,
)
_COARSER = (NumberFormat.FLOAT8, NumberFormat.BFLOAT16, NumberFormat.FLOAT16, NumberFormat.FLOAT32)
"""Formats, the coarsest first."""
_SCHEDULE_RTOL = 1e-6
"""A learning rate is a formula, not a result of training: it has no noise but the last digit."""
SPEED_REL = 0.05
"""What Bridge's ``evaluate.py`` allows a GPU's speed to differ by."""
_GRADIENT_FACTOR = 10.0
"""A gradient norm is a root of a sum of squares of differences, so it moves about ten times as much as the loss."""


def number_format(config: Mapping[str, ConfigValue]) -> NumberFormat:
    """The format that a run computes in, from its configuration dump; unknown without one."""
    precision = effective_settings(config).get("precision")
    return NumberFormat(precision) if isinstance(precision, str) else NumberFormat.UNKNOWN


def default_noise(baseline: RunLog, candidate: RunLog) -> NoiseFloor:
    """The floor of the coarser of the two number formats; wide and undecided where either is unknown."""
    formats = {number_format(baseline.config), number_format(candidate.config)}
    if NumberFormat.UNKNOWN in formats:
        return _UNKNOWN
    return _FLOORS[next(format_ for format_ in _COARSER if format_ in formats)]


def tolerance_noise(rtol: float) -> NoiseFloor:
    """The floor of a tolerance that somebody asked for: 0 for equality to the last digit."""
    if not 0 <= rtol < 1:
        raise ValueError(f"A relative tolerance lies in [0, 1), not {rtol}")
    return NoiseFloor(source="rtol" if rtol else "bit-exact", surely_noise_rel=rtol, surely_real_rel=rtol)


def speed_noise() -> NoiseFloor:
    """The floor of a time or a throughput without repeats: a single slow row says nothing, the median decides."""
    return NoiseFloor(
        source="what machines vary by", surely_noise_rel=1.0, surely_real_rel=1.0, surely_shift_rel=SPEED_REL
    )


def witness_noise(noise: NoiseFloor, metric: str) -> NoiseFloor:
    """The floor for another metric than the loss, from the loss's."""
    if metric == "learning_rate":
        return tolerance_noise(_SCHEDULE_RTOL)
    if metric not in ("grad_norm", "num_zeros"):
        return noise
    return NoiseFloor(
        source=noise.source,
        surely_noise_rel=noise.surely_noise_rel * _GRADIENT_FACTOR,
        surely_real_rel=noise.surely_real_rel * _GRADIENT_FACTOR,
        grows_after=noise.grows_after,
    )


def parse_tolerance(text: str) -> float | None:
    """``auto`` (None), ``exact`` (0) or ``rtol=1e-5``.

    Raises:
        ValueError: Anything else.
    """
    if text == "auto":
        return None
    if text == "exact":
        return 0.0
    name, _, figure = text.partition("=")
    try:
        rtol = float(figure)
    except ValueError:
        rtol = -1.0
    if name != "rtol" or not 0 < rtol < 1:
        raise ValueError(f"'{text}' is none of auto, exact, rtol=NUMBER (0 < NUMBER < 1, such as rtol=1e-5).")
    return rtol
