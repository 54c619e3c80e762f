"""Two logs in, one verdict out. Pure from the aligned curves on: numbers in, numbers out."""

from lossbisect.compare.align import align, metrics, within
from lossbisect.compare.noise import parse_tolerance
from lossbisect.compare.pipeline import compare_logs
from lossbisect.compare.presets import PRESETS
from lossbisect.compare.types import (
    AlignedCurves,
    Comparison,
    ConfigDifference,
    Diagnosis,
    Difference,
    Effect,
    Judgement,
    NoiseFloor,
    Repeats,
    RuleResult,
    Verdict,
)

__all__ = [
    "PRESETS",
    "AlignedCurves",
    "Comparison",
    "ConfigDifference",
    "Diagnosis",
    "Difference",
    "Effect",
    "Judgement",
    "NoiseFloor",
    "Repeats",
    "RuleResult",
    "Verdict",
    "align",
    "compare_logs",
    "metrics",
    "parse_tolerance",
    "within",
]
