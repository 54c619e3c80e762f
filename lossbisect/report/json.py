"""A judgement as one JSON object: full-precision numbers, null for what is missing or NaN."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

from lossbisect.compare.stats import classify
from lossbisect.compare.types import Comparison, Judgement

__all__ = ["SCHEMA_VERSION", "render_json", "without_nan"]

SCHEMA_VERSION = 1
"""Raised when a key goes or changes its meaning; new keys don't raise it."""


def render_json(judgement: Judgement) -> str:
    """One object, indented, without a final newline. Keys that aren't plain are told in ``docs/method.md``."""
    comparison = judgement.comparison
    report = {
        "schema_version": SCHEMA_VERSION,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "metric": comparison.curves.metric,
        "aligned_on": comparison.curves.on,
        "noise": asdict(comparison.noise),
        "difference": asdict(comparison.difference),
        "witnesses": {name: asdict(difference) for name, difference in comparison.witnesses.items()},
        "config": [asdict(item) for item in comparison.config],
        "notes": list(comparison.notes),
        "ends": asdict(comparison.ends) if comparison.ends else None,
        "performance": [asdict(item) | {"is_worse": item.is_worse} for item in comparison.performance],
        "rule": asdict(comparison.rule) if comparison.rule else None,
        "diagnoses": [asdict(item) for item in comparison.diagnoses],
        "rows": _rows(comparison),
    }
    return json.dumps(without_nan(report), indent=2, allow_nan=False, ensure_ascii=False)


def _rows(comparison: Comparison) -> list[dict[str, object]]:
    """One object an iteration; ``*_state`` tells a NaN from a missing value, which are both null."""
    columns = (
        "iteration",
        "window",
        "baseline",
        "candidate",
        "relative",
        "baseline_state",
        "candidate_state",
        "noise_rel",
        "real_rel",
    )
    rows = classify(comparison.curves, comparison.noise)
    return rows.select(*dict.fromkeys(("iteration", comparison.curves.on, *columns))).to_dicts()


def without_nan(value: object) -> object:
    """The same plain values with null for numbers that JSON doesn't have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value
