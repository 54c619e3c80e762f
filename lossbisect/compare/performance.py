"""How fast each run is and how much memory it takes. It never decides about a loss.

Method: the median over the rows, the first tenth left out (compilation, caches, the first allocation), so that a slow
row, such as one with a checkpoint, has no weight. Between two runs of the same thing machines vary: by as much as the
repeats' medians do, or without any by the 5 % that Bridge's ``evaluate.py`` allows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lossbisect.compare.align import PERFORMANCE
from lossbisect.compare.noise import SPEED_REL
from lossbisect.compare.types import Performance, Repeats
from lossbisect.compare.wording import counted
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MORE_IS_WORSE", "performance"]

MORE_IS_WORSE = {"elapsed_time_per_iteration_ms": True, "throughput_per_gpu_tflops": False}
_PEAKS = ("mem_max_allocated_gigabytes", "max_allocated_mb")
_WARM_UP = 0.1


def performance(baseline: RunLog, candidate: RunLog, repeats: Repeats) -> tuple[Performance, ...]:
    """Time, throughput and peak memory that both logs tell; the most telling first."""
    found = []
    for metric in (*PERFORMANCE, *_PEAKS):
        ours, theirs = _middle(baseline, metric), _middle(candidate, metric)
        if not ours or theirs is None:
            continue
        sides = [ours, *_known(repeats.baseline, metric)], [theirs, *_known(repeats.candidate, metric)]
        count = sum(map(len, sides)) - 2
        spread = max((max(side) - min(side)) / ours for side in sides)
        found.append(
            Performance(
                metric=metric,
                baseline=ours,
                candidate=theirs,
                change_rel=(theirs - ours) / ours,
                noise_rel=spread if count else SPEED_REL,
                source=counted(count, "repeat") if count else "machines",
                is_more_worse=MORE_IS_WORSE.get(metric, True),
            )
        )
    return tuple(found)


def _known(runs: Sequence[RunLog], metric: str) -> list[float]:
    return [value for run in runs if (value := _middle(run, metric)) is not None]


def _middle(log: RunLog, metric: str) -> float | None:
    """The run's own figure; None where its log has none."""
    if metric in _PEAKS:
        return max((report.values[metric] for report in log.memory if metric in report.values), default=None)
    rows: pl.DataFrame = log.iterations
    if metric not in rows.columns:
        return None
    values = rows[metric].drop_nulls().drop_nans()
    middle = values.slice(min(values.len() - 1, max(1, int(values.len() * _WARM_UP)))).median() if len(values) else None
    return float(middle) if isinstance(middle, int | float) else None
