"""Two logs laid over each other, iteration by iteration."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.compare.types import AlignedCurves
from lossbisect.compare.wording import counted, iteration_list
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import LossKind, RunLog
from lossbisect.schema import ITERATION_COLUMNS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["align", "is_loss", "metrics", "within"]

_NOT_METRICS = frozenset(column.name for column in ITERATION_COLUMNS) - {
    "lm_loss",
    "grad_norm",
    "num_zeros",
    "params_norm",
    "loss_scale",
    "learning_rate",
}
_QUANTUM = {"grad_norm": 5e-4, "params_norm": 5e-4, "max_attention_logit": 5e-4, "num_zeros": 0.5, "loss_scale": 0.05}
"""Half a unit in the last printed place, absolute, for the columns that aren't printed with seven digits."""
_OF_THE_ITERATION = frozenset({*_QUANTUM, "learning_rate"})
"""Columns that hold the iteration's own value even where losses are means over the log interval."""
_REPAIRED = "row-2-mean"
_MAYBE_MEAN = "row-2-undecided"
_REPAIR_FACTOR = 3.0
"""A repaired row is 2 * row2 - row1, so three times the printing error of one row."""


def metrics(log: RunLog) -> tuple[str, ...]:
    """Columns of a log that can be compared and hold at least one value, losses first."""
    frame = log.iterations
    names = [name for name in frame.columns if name not in _NOT_METRICS and frame[name].null_count() < frame.height]
    return tuple(sorted(names, key=lambda name: (name != "lm_loss", not is_loss(name))))


def within(log: RunLog, first: int | None, last: int | None) -> RunLog:
    """The log with the iterations from first to last only, both inclusive; None leaves an end open."""
    import polars as pl

    if first is None and last is None:
        return log
    iteration = pl.col("iteration")
    kept = (iteration >= (first or 0)) & ((iteration <= last) if last is not None else pl.lit(value=True))
    return replace(log, iterations=log.iterations.filter(kept))


def is_loss(metric: str) -> bool:
    """Whether a column is a loss, so a mean over the log interval in console logs."""
    return metric not in _OF_THE_ITERATION


def align(baseline: RunLog, candidate: RunLog, metric: str) -> AlignedCurves:
    """One row for each iteration that both logs have a row for.

    Where an iteration repeats, the last attempt's row counts. A cut row counts if the metric's value in it is whole.
    Interval means are compared only where both sides average the same number of iterations.

    Raises:
        AlignmentError: No log, or only one, has this metric; no iteration in common; or no interval in common.
    """
    import polars as pl

    _require_metric(baseline, candidate, metric)
    dropped: list[str] = []
    left = _usable_rows(baseline, metric, "baseline", dropped)
    right = _usable_rows(candidate, metric, "candidate", dropped)
    joined = left.join(right, on="iteration", suffix="_candidate").sort("iteration")
    if joined.is_empty():
        raise AlignmentError(
            f"No iteration in common: {baseline.path} has {_span(left)}, {candidate.path} has {_span(right)}. "
            f"Are these runs of the same training?"
        )
    dropped += _only_here(left, joined, "baseline") + _only_here(right, joined, "candidate")
    if is_loss(metric):
        joined = _equal_intervals(joined, baseline, candidate, dropped)
    frame = joined.select(
        "iteration",
        pl.col("interval").alias("window"),
        pl.col("value").alias("baseline"),
        pl.col("value_candidate").alias("candidate"),
        (pl.col("value_candidate") - pl.col("value")).alias("delta"),
        (pl.col("quantum") + pl.col("quantum_candidate")).alias("quantum"),
        (pl.col("is_repaired") | pl.col("is_repaired_candidate")).alias("is_repaired"),
    )
    return AlignedCurves(metric=metric, on="iteration", frame=frame, dropped=tuple(dropped))


def _require_metric(baseline: RunLog, candidate: RunLog, metric: str) -> None:
    have = {side: metrics(log) for side, log in (("baseline", baseline), ("candidate", candidate))}
    missing = [side for side, names in have.items() if metric not in names]
    if not missing:
        return
    failures = [
        f" The {side} failed ({log.failure.kind}: {log.failure.text})."
        for side, log in (("baseline", baseline), ("candidate", candidate))
        if side in missing and log.failure is not None
    ]
    listing = "; ".join(f"the {side} has {', '.join(names) or 'none'}" for side, names in have.items())
    who = (
        f"Neither log has a value of '{metric}'"
        if len(missing) == 2
        else f"The {missing[0]} has no value of '{metric}'"
    )
    raise AlignmentError(f"{who}. Metrics: {listing}.{''.join(failures)}")


def _usable_rows(log: RunLog, metric: str, side: str, dropped: list[str]) -> "pl.DataFrame":
    """Columns iteration, value, interval, quantum; one row an iteration, ascending."""
    import polars as pl

    rows = log.iterations.with_row_index("order")
    cut = rows.filter(~pl.col("is_complete") & pl.col(metric).is_null())
    if cut.height:
        dropped.append(f"{side}: {counted(cut.height, 'row')} cut before the value of {metric} {_which(cut)}.")
        rows = rows.join(cut.select("order"), on="order", how="anti")
    doubtful = rows.filter(pl.col("line_no").is_in(_noted_lines(log, _MAYBE_MEAN))) if is_loss(metric) else rows.clear()
    if doubtful.height:
        dropped.append(
            f"{side}: {counted(doubtful.height, 'row')} that may be a mean of two iterations {_which(doubtful)}."
        )
        rows = rows.join(doubtful.select("order"), on="order", how="anti")
    latest = rows.sort("attempt", "order").unique("iteration", keep="last").sort("iteration")
    if latest.height < rows.height:
        repeated = rows.join(latest.select("order"), on="order", how="anti")
        dropped.append(
            f"{side}: {counted(repeated.height, 'row')} printed again later, where the last counts {_which(repeated)}."
        )
    is_repaired = pl.col("line_no").is_in(_noted_lines(log, _REPAIRED)).fill_null(value=False) & pl.lit(is_loss(metric))
    value = pl.col(metric).cast(pl.Float64)
    half_unit = _half_unit(log, metric, value).fill_null(0.0).fill_nan(0.0)
    return latest.select(
        "iteration",
        value.alias("value"),
        _interval(log).alias("interval"),
        (half_unit * pl.when(is_repaired).then(_REPAIR_FACTOR).otherwise(1.0)).alias("quantum"),
        is_repaired.alias("is_repaired"),
    )


def _noted_lines(log: RunLog, kind: str) -> list[int]:
    return [note.line_no for note in log.notes if note.kind == kind and note.line_no is not None]


def _half_unit(log: RunLog, metric: str, value: "pl.Expr") -> "pl.Expr":
    import polars as pl

    if log.loss_quantum_rel == 0:
        return pl.lit(0.0)
    if metric in _QUANTUM:
        return pl.lit(_QUANTUM[metric])
    return value.abs() * log.loss_quantum_rel


def _interval(log: RunLog) -> "pl.Expr":
    """Iterations that a row stands for: advanced and skipped ones; null where that can't be known."""
    import polars as pl

    if log.loss_kind is LossKind.PER_ITERATION:
        return pl.lit(1, dtype=pl.Int64)
    return pl.col("window") + pl.col("number_of_skipped_iterations").fill_null(0)


def _equal_intervals(joined: "pl.DataFrame", baseline: RunLog, candidate: RunLog, dropped: list[str]) -> "pl.DataFrame":
    import polars as pl

    same = pl.col("interval").eq_missing(pl.col("interval_candidate"))
    unequal = joined.filter(~same)
    if unequal.is_empty():
        return joined
    if unequal.height == joined.height:
        raise AlignmentError(
            f"Different log intervals: a row of {baseline.path} is the mean of {_interval_text(joined['interval'])}, a "
            f"row of {candidate.path} of {_interval_text(joined['interval_candidate'])}, so no two rows stand for the "
            f"same iterations. Log both runs with the same --log-interval."
        )
    rows = counted(unequal.height, "row")
    dropped.append(f"both: {rows} averaged over different numbers of iterations {_which(unequal)}.")
    return joined.filter(same)


def _interval_text(column: "pl.Series") -> str:
    lengths = sorted(column.drop_nulls().unique().to_list())
    if not lengths:
        return "an unknown number of iterations"
    return counted(lengths[-1], "iteration")


def _only_here(rows: "pl.DataFrame", joined: "pl.DataFrame", side: str) -> list[str]:
    alone = rows.join(joined.select("iteration"), on="iteration", how="anti")
    other = "candidate" if side == "baseline" else "baseline"
    if alone.is_empty():
        return []
    return [f"{side}: {counted(alone.height, 'row')} without a row in the {other} {_which(alone)}."]


def _which(rows: "pl.DataFrame") -> str:
    return f"({iteration_list(sorted(set(rows['iteration'].to_list())))})"


def _span(rows: "pl.DataFrame") -> str:
    iterations = rows["iteration"].to_list()
    return iteration_list(iterations) if iterations else "no usable row"
