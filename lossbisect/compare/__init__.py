"""Two logs in, one verdict out. Pure from the aligned curves on: numbers in, numbers out."""

from importlib import import_module
from typing import TYPE_CHECKING

from lossbisect.compare.align import align  # at once: later the name would be that of the module

if TYPE_CHECKING:
    from lossbisect.compare.align import ON, metrics, within
    from lossbisect.compare.early import Early, EarlyState, early_state
    from lossbisect.compare.groups import Group, compare_groups
    from lossbisect.compare.history import stored_noise
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
        Ends,
        Judgement,
        NoiseFloor,
        Performance,
        Repeats,
        RuleResult,
        Verdict,
    )

__all__ = [
    "ON",
    "PRESETS",
    "AlignedCurves",
    "Comparison",
    "ConfigDifference",
    "Diagnosis",
    "Difference",
    "Early",
    "EarlyState",
    "Effect",
    "Ends",
    "Group",
    "Judgement",
    "NoiseFloor",
    "Performance",
    "Repeats",
    "RuleResult",
    "Verdict",
    "align",
    "compare_groups",
    "compare_logs",
    "early_state",
    "metrics",
    "parse_tolerance",
    "stored_noise",
    "within",
]

_HOME = {
    "ON": "lossbisect.compare.align",
    "PRESETS": "lossbisect.compare.presets",
    "AlignedCurves": "lossbisect.compare.types",
    "Comparison": "lossbisect.compare.types",
    "ConfigDifference": "lossbisect.compare.types",
    "Diagnosis": "lossbisect.compare.types",
    "Difference": "lossbisect.compare.types",
    "Early": "lossbisect.compare.early",
    "EarlyState": "lossbisect.compare.early",
    "Effect": "lossbisect.compare.types",
    "Ends": "lossbisect.compare.types",
    "Group": "lossbisect.compare.groups",
    "Judgement": "lossbisect.compare.types",
    "NoiseFloor": "lossbisect.compare.types",
    "Performance": "lossbisect.compare.types",
    "Repeats": "lossbisect.compare.types",
    "RuleResult": "lossbisect.compare.types",
    "Verdict": "lossbisect.compare.types",
    "compare_groups": "lossbisect.compare.groups",
    "compare_logs": "lossbisect.compare.pipeline",
    "early_state": "lossbisect.compare.early",
    "metrics": "lossbisect.compare.align",
    "parse_tolerance": "lossbisect.compare.noise",
    "stored_noise": "lossbisect.compare.history",
    "within": "lossbisect.compare.align",
}


def __getattr__(name: str) -> object:
    """The public names are loaded when they are first used: a comparison needs neither watch nor groups."""
    if name not in _HOME:
        raise AttributeError(f"module 'lossbisect.compare' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
