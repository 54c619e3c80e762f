"""Bridge's ``Step Time`` lines, paired with their rows.

Rank 0 prints ``Step Time : 14.26s GPU utilization: 589.1MODEL_TFLOP/s/GPU`` and the last rank the row, mostly but not
always after it. So they are paired by value: 14.26 s is the 14255.8 ms of the nearest row that fits.
"""

from typing import TYPE_CHECKING, Literal

from lossbisect.parsers.events import StepTime
from lossbisect.parsers.records import ELAPSED_COLUMN, THROUGHPUT_COLUMN

if TYPE_CHECKING:
    import polars as pl

__all__ = ["with_step_times"]

_ROUNDING_MS = 5.06  # times are printed to 10 ms on that line, to 0.1 ms in the row
_FARTHEST_LINES = 200
_MOST_TFLOPS = 10_000.0  # more than any GPU does; Bridge printed 59892 once, and 0 where it can't tell


def with_step_times(frame: "pl.DataFrame", step_times: list[StepTime]) -> "pl.DataFrame":
    """The same rows, with the throughput of their step times where they have none of their own."""
    import polars as pl

    step_times = [step for step in step_times if 0.0 < step.throughput_tflops < _MOST_TFLOPS]
    if not step_times:
        return frame
    steps = pl.DataFrame(
        [(step.line_no, step.time_ms, step.throughput_tflops) for step in step_times],
        schema={"_line": pl.Int64, "_time": pl.Float64, "_throughput": pl.Float64},
        orient="row",
    )
    found: list[pl.Expr] = []
    joined = frame.with_row_index("_row").sort("line_no")
    strategies: tuple[Literal["backward", "forward"], ...] = ("backward", "forward")
    for strategy in strategies:
        suffix = f"_{strategy}"
        joined = joined.join_asof(
            steps.rename({name: f"{name}{suffix}" for name in steps.columns}),
            left_on="line_no",
            right_on=f"_line{suffix}",
            strategy=strategy,
            tolerance=_FARTHEST_LINES,
        )
        is_own = (pl.col(f"_time{suffix}") - pl.col(ELAPSED_COLUMN)).abs() <= _ROUNDING_MS
        found.append(pl.when(is_own).then(pl.col(f"_throughput{suffix}")))
    own = [pl.col(THROUGHPUT_COLUMN)] if THROUGHPUT_COLUMN in frame.columns else []
    throughput = pl.coalesce(*own, *found).alias(THROUGHPUT_COLUMN)
    return joined.with_columns(throughput).sort("_row").select(*dict.fromkeys((*frame.columns, THROUGHPUT_COLUMN)))
