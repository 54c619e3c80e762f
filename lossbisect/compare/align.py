"""Two logs laid over each other, iteration by iteration."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lossbisect.compare.types import AlignedCurves
from lossbisect.compare.windows import matched
from lossbisect.compare.wording import counted, iteration_list
from lossbisect.errors import AlignmentError
from lossbisect.parsers.runlog import LossKind, RunLog
from lossbisect.schema import ITERATION_COLUMNS

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ITERATION", "ON", "PERFORMANCE", "SAMPLES", "align", "is_loss", "is_mean", "metrics", "within"]

ITERATION = "iteration"
SAMPLES = "consumed_samples"
ON = (ITERATION, SAMPLES)
"""What rows can be matched by."""
PERFORMANCE = ("elapsed_time_per_iteration_ms", "throughput_per_gpu_tflops")
"""Columns that say how fast a run is, not what it learns."""

_NOT_METRICS = frozenset(column.name for column in ITERATION_COLUMNS) - {
    *PERFORMANCE,
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
_SAME_INTERVAL = "Log both runs with the same --log-interval, or one with a divisor of the other's."
_REPAIRED = "row-2-mean"
_MAYBE_MEAN = "row-2-undecided"
_REPAIR_FACTOR = 3.0
"""A repaired row is 2 * row2 - row1, so three times the printing error of one row."""


def metrics(log: RunLog) -> tuple[str, ...]:
    """Columns of a log that can be compared and hold at least one value, losses first."""
    frame = log.iterations
    names = [name for name in frame.columns if name not in _NOT_METRICS and frame[name].null_count() < frame.height]
    return tuple(sorted(names, key=lambda name: (name != "lm_loss", not is_loss(name), name in PERFORMANCE)))


def within(log: RunLog, first: int | None, last: int | None) -> RunLog:
    """The log with the iterations from first to last only, both inclusive; None leaves an end open.

    Raises:
        AlignmentError: The log has rows, and none of these iterations.
    """
    import polars as pl

    if first is None and last is None:
        return log
    iteration = pl.col("iteration")
    kept = (iteration >= (first or 0)) & ((iteration <= last) if last is not None else pl.lit(value=True))
    rows = log.iterations.filter(kept)
    if rows.is_empty() and log.iterations.height:
        asked = " ".join(f"{name} {at}" for name, at in (("from", first), ("to", last)) if at is not None)
        asked += " on" if last is None else ""
        raise AlignmentError(f"{log.path}: no iteration {asked}; it has {_span(log.iterations, ITERATION)}.")
    return replace(log, iterations=rows)


def is_mean(metric: str) -> bool:
    """Whether a column is a mean over the log interval in console logs, as losses and times are."""
    return metric not in _OF_THE_ITERATION


def is_loss(metric: str) -> bool:
    """Whether a column is a loss, so a mean over the log interval that `second_row` printers get wrong."""
    return is_mean(metric) and metric not in PERFORMANCE


def align(baseline: RunLog, candidate: RunLog, metric: str, *, on: str = ITERATION) -> AlignedCurves:
    """One row for each iteration, or number of consumed samples, that both logs have a row for.

    Where an iteration repeats, the last attempt's row counts. A cut row counts if the metric's value in it is whole.
    Interval means are compared over equal windows only: where one side logs more often, its rows are averaged.

    Args:
        baseline: The log to trust.
        candidate: The log to judge.
        metric: Column to compare.
        on: ``iteration``; or ``consumed_samples`` for runs of different batch sizes, whose iterations don't stand for
            the same samples. The frame's iterations are then the baseline's.

    Raises:
        AlignmentError: No log, or only one, has this metric; no iteration in common; or no interval in common.
    """
    import polars as pl

    _require_metric(baseline, candidate, metric)
    dropped: list[str] = []
    left = _usable_rows(baseline, metric, "baseline", on, dropped)
    right = _usable_rows(candidate, metric, "candidate", on, dropped)
    pair = matched(left, right, on, is_mean=is_mean(metric))
    joined = pair.frame
    common = pl.concat([joined.select(on), pair.unmatched.select(on)])
    if common.is_empty():
        noun = "iteration" if on == ITERATION else "number of consumed samples"
        raise AlignmentError(
            f"No {noun} in common: {baseline.path} has {_span(left, on)}, {candidate.path} has {_span(right, on)}. "
            f"{_why_apart(left, right, on)}"
        )
    for rows, side, other, used in (
        (left, "baseline", "candidate", pair.averaged[0]),
        (right, "candidate", "baseline", pair.averaged[1]),
    ):
        if used:
            averaged = rows.filter(pl.col(on).is_in(list(used)))
            which = _which(averaged)
            dropped.append(f"{side}: {counted(len(used), 'row')} averaged over the windows of the {other} {which}.")
            dropped += _only_here(rows.join(averaged, on=on, how="anti"), common, side, on)
        elif rows.height > common.height:
            dropped += _only_here(rows, common, side, on)
    if pair.unmatched.height:
        _tell_unmatched(joined, pair.unmatched, baseline, candidate, on, dropped)
    frame = joined.select(
        "iteration",
        *([on] if on != ITERATION else []),
        pl.col("interval").alias("window"),
        pl.col("value").alias("baseline"),
        pl.col("value_candidate").alias("candidate"),
        (pl.col("value_candidate") - pl.col("value")).alias("delta"),
        (pl.col("quantum") + pl.col("quantum_candidate")).alias("quantum"),
        (pl.col("is_repaired") | pl.col("is_repaired_candidate")).alias("is_repaired"),
    )
    return AlignedCurves(metric=metric, on=on, frame=frame, dropped=tuple(dropped))


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


def _usable_rows(log: RunLog, metric: str, side: str, on: str, dropped: list[str]) -> "pl.DataFrame":
    """Columns iteration, `on`, value, interval, advanced, quantum, is_repaired; one row a position, ascending."""
    import polars as pl

    rows = log.iterations.with_row_index("order")
    cut = rows.clear() if rows["is_complete"].all() else rows.filter(~pl.col("is_complete") & pl.col(metric).is_null())
    if cut.height:
        dropped.append(f"{side}: {counted(cut.height, 'row')} cut before the value of {metric} {_which(cut)}.")
        rows = rows.join(cut.select("order"), on="order", how="anti")
    maybe = _noted_lines(log, _MAYBE_MEAN) if is_loss(metric) else []
    doubtful = rows.filter(pl.col("line_no").is_in(maybe)) if maybe else rows.clear()
    if doubtful.height:
        dropped.append(
            f"{side}: {counted(doubtful.height, 'row')} that may be a mean of two iterations {_which(doubtful)}."
        )
        rows = rows.join(doubtful.select("order"), on="order", how="anti")
    if on != ITERATION:
        rows = _with_position(rows, log, on, side, dropped)
    latest = rows if _only_rises(rows[on]) else rows.sort("attempt", "order").unique(on, keep="last").sort(on)
    if latest.height < rows.height:
        repeated = rows.join(latest.select("order"), on="order", how="anti")
        dropped.append(
            f"{side}: {counted(repeated.height, 'row')} printed again later, where the last counts {_which(repeated)}."
        )
    repaired = _noted_lines(log, _REPAIRED) if is_loss(metric) else []
    is_repaired = pl.col("line_no").is_in(repaired).fill_null(value=False) if repaired else pl.lit(value=False)
    value = pl.col(metric).cast(pl.Float64)
    half_unit = _half_unit(log, metric, value).fill_null(0.0).fill_nan(0.0)
    interval = _interval(log)
    return latest.select(
        "iteration",
        *([on] if on != ITERATION else []),
        value.alias("value"),
        (interval if on == ITERATION else interval * pl.col("global_batch_size")).alias("interval"),
        (pl.lit(1, dtype=pl.Int64) if log.loss_kind is LossKind.PER_ITERATION else pl.col("window")).alias("advanced"),
        (half_unit * pl.when(is_repaired).then(_REPAIR_FACTOR).otherwise(1.0)).alias("quantum"),
        is_repaired.alias("is_repaired"),
    )


def _with_position(rows: "pl.DataFrame", log: RunLog, on: str, side: str, dropped: list[str]) -> "pl.DataFrame":
    """The rows that say where they stand."""
    import polars as pl

    without = rows.filter(pl.col(on).is_null())
    if without.height == rows.height:
        raise AlignmentError(f"{log.path}: no row says its {on}, so it can't be compared by that. Leave out --on.")
    if without.height:
        dropped.append(f"{side}: {counted(without.height, 'row')} without {on} {_which(without)}.")
    return rows.filter(pl.col(on).is_not_null())


def _only_rises(positions: "pl.Series") -> bool:
    """Whether no position comes twice or out of order: the usual case, worth a short cut."""
    return bool((positions.diff().drop_nulls() > 0).all())


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


def _tell_unmatched(
    joined: "pl.DataFrame",
    unmatched: "pl.DataFrame",
    baseline: RunLog,
    candidate: RunLog,
    on: str,
    dropped: list[str],
) -> None:
    """Say which windows can't be compared.

    Raises:
        AlignmentError: None can be.
    """
    if joined.is_empty():
        noun = "iteration" if on == ITERATION else "sample"
        ours, theirs = (_interval_text(unmatched[name], noun, on) for name in ("interval", "interval_candidate"))
        raise AlignmentError(
            f"Different log intervals: a row of {baseline.path} is the mean of {ours}, a row of {candidate.path} of "
            f"{theirs}, and the rows of neither make up a row of the other. {_SAME_INTERVAL}"
        )
    rows = counted(unmatched.height, "row")
    dropped.append(f"both: {rows} averaged over different numbers of iterations {_which(unmatched)}.")


def _why_apart(left: "pl.DataFrame", right: "pl.DataFrame", on: str) -> str:
    """What to look at where no row of one side is one of the other's."""
    ours, theirs = (max(rows["interval"].drop_nulls().to_list(), default=None) for rows in (left, right))
    if on == ITERATION and ours and theirs and ours != theirs:
        return (
            f"One logs every {counted(ours, 'iteration')} and the other every {counted(theirs, 'iteration')}. "
            f"{_SAME_INTERVAL}"
        )
    return "Are these runs of the same training?"


def _interval_text(column: "pl.Series", noun: str, on: str) -> str:
    lengths = sorted(column.drop_nulls().unique().to_list())
    if not lengths:
        return f"an unknown number of {noun}s" + ("" if on == ITERATION else " (no global batch size)")
    return counted(lengths[-1], noun)


def _only_here(rows: "pl.DataFrame", common: "pl.DataFrame", side: str, on: str) -> list[str]:
    alone = rows.join(common.select(on), on=on, how="anti")
    other = "candidate" if side == "baseline" else "baseline"
    if alone.is_empty():
        return []
    return [f"{side}: {counted(alone.height, 'row')} without a row in the {other} {_which(alone)}."]


def _which(rows: "pl.DataFrame") -> str:
    return f"({iteration_list(sorted(set(rows['iteration'].to_list())))})"


def _span(rows: "pl.DataFrame", on: str) -> str:
    if rows.is_empty():
        return "no usable row"
    if on == ITERATION:
        return iteration_list(rows["iteration"].to_list())
    return f"{rows[on][0]} to {rows[on][-1]} in {counted(rows.height, 'row')}"
