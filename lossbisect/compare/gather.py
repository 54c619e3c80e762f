"""The evidence for a diagnosis, taken from two logs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lossbisect.compare.config_diff import effective_settings
from lossbisect.compare.evidence import Evidence, Pair, pairs_of
from lossbisect.compare.types import AlignedCurves, ConfigDifference, Difference, NoiseFloor
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
        last=(_last(baseline), _last(candidate)),
        failures=tuple(
            f"{side}: {log.failure.kind}: {log.failure.text}"
            for side, log in (("baseline", baseline), ("candidate", candidate))
            if log.failure is not None
        ),
        repaired=frozenset(frame.filter("is_repaired")["iteration"].to_list()),
        columns=_columns(baseline, candidate),
    )


def _columns(baseline: RunLog, candidate: RunLog) -> dict[str, list[Pair]]:
    """Both sides' values of each column at the iterations that both have; the last attempt counts."""
    left, right = (_latest(log).select("iteration", *_COLUMNS) for log in (baseline, candidate))
    joined = left.join(right, on="iteration", suffix="_candidate").sort("iteration")
    return {
        name: [Pair(*row) for row in joined.select("iteration", name, f"{name}_candidate").iter_rows()]
        for name in _COLUMNS
    }


def _latest(log: RunLog) -> "pl.DataFrame":
    return log.iterations.unique("iteration", keep="last", maintain_order=True)


def _resumes(log: RunLog) -> list[int]:
    """First iteration that each attempt after the first one prints; later than the first iteration of all."""
    rows = log.iterations.filter(log.iterations["attempt"] > 0)
    firsts = rows.unique("attempt", keep="first", maintain_order=True)["iteration"].to_list()
    begin = log.iterations["iteration"].min()
    return [first for first in firsts if first != begin]


def _last(log: RunLog) -> int:
    last = log.iterations["iteration"].max()
    return last if isinstance(last, int) else 0
