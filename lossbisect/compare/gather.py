"""The evidence for a diagnosis, taken from two logs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lossbisect.compare.align import ITERATION
from lossbisect.compare.config_diff import effective_settings
from lossbisect.compare.evidence import Evidence, Pair, pairs_of
from lossbisect.compare.types import AlignedCurves, ConfigDifference, Difference, Ends, NoiseFloor
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

__all__ = ["gathered"]

_COLUMNS = ("learning_rate", "consumed_samples", "number_of_skipped_iterations")


def gathered(
    baseline: RunLog,
    candidate: RunLog,
    *,
    curves: Mapping[str, AlignedCurves],
    metric: str,
    noise: NoiseFloor,
    differences: Mapping[str, Difference],
    config: tuple[ConfigDifference, ...],
    ends: Ends,
    are_medians: bool = False,
) -> Evidence:
    """What `lossbisect.compare.diagnose` reads of two logs."""
    frame = curves[metric].frame
    return Evidence(
        metric=metric,
        noise=noise,
        pairs={name: pairs_of(pair) for name, pair in curves.items()},
        differences=differences,
        config=config,
        settings=effective_settings(baseline.config),
        resumes=tuple(sorted({*_resumes(baseline), *_resumes(candidate)})),
        ends=ends,
        are_medians=are_medians,
        repaired=frozenset(frame.filter("is_repaired")["iteration"].to_list()),
        columns=_columns(baseline, candidate, curves[metric].on),
    )


def _columns(baseline: RunLog, candidate: RunLog, on: str) -> dict[str, list[Pair]]:
    """Both sides' values of each column at the rows that both have; the last attempt counts."""
    names = [name for name in _COLUMNS if on == ITERATION or name == "learning_rate"]
    left, right = (
        _latest(log).select(*dict.fromkeys(("iteration", on)), *names).drop_nulls(on) for log in (baseline, candidate)
    )
    joined = left.join(right, on=on, suffix="_candidate").sort(on)
    return {
        name: [Pair(*row) for row in joined.select("iteration", name, f"{name}_candidate").iter_rows()]
        for name in names
    }


def _latest(log: RunLog) -> "pl.DataFrame":
    return log.iterations.unique("iteration", keep="last", maintain_order=True)


def _resumes(log: RunLog) -> list[int]:
    """First iteration that each attempt after the first one prints; later than the first iteration of all."""
    rows = log.iterations.filter(log.iterations["attempt"] > 0)
    firsts = rows.unique("attempt", keep="first", maintain_order=True)["iteration"].to_list()
    begin = log.iterations["iteration"].min()
    return [first for first in firsts if first != begin]
