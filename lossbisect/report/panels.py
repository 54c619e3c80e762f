"""What pictures and pages draw: the rows of each metric of one or more comparisons against one baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from lossbisect.compare.stats import classify
from lossbisect.compare.types import AlignedCurves, Comparison, Difference, Judgement, NoiseFloor
from lossbisect.compare.wording import metric_name

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Panel", "axis_label", "panels_of", "short_names"]

_UNITS = {"ms": "ms", "s": "s", "pct": "%", "tflops": "TFLOP/s", "mb": "MB", "gigabytes": "GB", "nats": "nats"}
_LONGEST_NAME = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One metric of one or more comparisons.

    Attributes:
        metric: Column name.
        label: What an axis says: name and unit.
        on: What the horizontal axis says: ``iteration``, or ``iteration of the baseline`` where rows are matched by
            something else.
        rows: The classified rows (`lossbisect.compare.stats.classify`) of each comparison; None where one lacks it.
        noise: The noise floor of each comparison; None where one lacks it.
        differences: How the metric differs in each comparison; None where one lacks it.
    """

    metric: str
    label: str
    on: str
    rows: "tuple[pl.DataFrame | None, ...]"
    noise: tuple[NoiseFloor | None, ...]
    differences: tuple[Difference | None, ...]

    @property
    def onsets(self) -> tuple[int | None, ...]:
        """First divergent iteration of each comparison."""
        return tuple(None if item is None else item.first_divergent for item in self.differences)

    @property
    def is_different(self) -> bool:
        """Some value differs in some comparison."""
        return any(item is not None and not item.is_identical for item in self.differences)


def panels_of(judgements: Sequence[Judgement]) -> tuple[Panel, ...]:
    """The judged metric's panel, then one for each witness, in the order of the first comparison that has it."""
    comparisons = [judgement.comparison for judgement in judgements]
    names = dict.fromkeys(name for item in comparisons for name in (item.curves.metric, *item.witness_curves))
    return tuple(_panel(name, comparisons) for name in names)


def axis_label(metric: str) -> str:
    """A column's name with its unit, as an axis says it: ``lm loss (nats per token)``."""
    if metric.endswith("loss"):
        return f"{metric_name(metric)} (nats per token)"
    stem, _, unit = metric.rpartition("_")
    return f"{metric_name(stem)} ({_UNITS[unit]})" if stem and unit in _UNITS else metric_name(metric)


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Files' names with as many of their folders as tell them apart, cut on the left if they are long."""
    paths = [PurePath(name) for name in names]
    depth = 1
    while depth < max((len(path.parts) for path in paths), default=1):
        if len({path.parts[-depth:] for path in paths}) == len(set(paths)):
            break
        depth += 1
    texts = ["/".join(path.parts[-depth:]) or name for path, name in zip(paths, names, strict=True)]
    return tuple(text if len(text) <= _LONGEST_NAME else f"…{text[1 - _LONGEST_NAME :]}" for text in texts)


def _panel(metric: str, comparisons: Sequence[Comparison]) -> Panel:
    parts = [_parts(metric, comparison) for comparison in comparisons]
    return Panel(
        metric=metric,
        label=axis_label(metric),
        on="iteration" if comparisons[0].curves.on == "iteration" else "iteration of the baseline",
        rows=tuple(classify(part[0], part[1]) if part else None for part in parts),
        noise=tuple(part[1] if part else None for part in parts),
        differences=tuple(part[2] if part else None for part in parts),
    )


def _parts(metric: str, comparison: Comparison) -> tuple[AlignedCurves, NoiseFloor, Difference] | None:
    if metric == comparison.curves.metric:
        return comparison.curves, comparison.noise, comparison.difference
    if metric not in comparison.witness_curves:
        return None
    return comparison.witness_curves[metric], comparison.witness_noise[metric], comparison.witnesses[metric]
