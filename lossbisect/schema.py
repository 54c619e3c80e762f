"""Every column of a loss table: name, type, unit and what null means. Spelled nowhere else.

A column's name is the log's own key, lower case, blanks and dashes as `_`, brackets dropped, the unit kept:
``elapsed time per iteration (ms)`` becomes ``elapsed_time_per_iteration_ms``. The set is open: a key that isn't listed
here (an auxiliary loss, a fork's field) becomes a Float64 column under its own name.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ITERATION_COLUMNS", "OWN_COLUMNS", "VALIDATION_COLUMNS", "Column", "column_name", "conform", "empty_frame"]


class Column(NamedTuple):
    """One column of a table.

    Attributes:
        name: The column's name, unit included.
        dtype: Name of the polars type.
        meaning: What the value says, with its unit.
        null: What a missing value says.
    """

    name: str
    dtype: str
    meaning: str
    null: str


def _column(name: str, dtype: str, meaning: str, null: str = "not logged") -> Column:
    return Column(name=name, dtype=dtype, meaning=meaning, null=null)


ITERATION_COLUMNS: tuple[Column, ...] = (
    _column("iteration", "Int64", "number of the iteration, 1-based, as logged", "never null"),
    _column("attempt", "Int64", "0-based number of the process start that this row belongs to", "never null"),
    _column("window", "Int64", "advanced (not skipped) iterations averaged in this row", "unknown"),
    _column("consumed_samples", "Int64", "sequences consumed so far"),
    _column("global_batch_size", "Int64", "sequences per iteration"),
    _column("learning_rate", "Float64", "learning rate of this iteration"),
    _column("lm_loss", "Float64", "loss in nats per token; NaN: the loss went NaN", "nothing advanced, or not logged"),
    _column("grad_norm", "Float64", "gradient norm before clipping, of this iteration", "skipped, or not logged"),
    _column("num_zeros", "Float64", "zeros in the gradient"),
    _column("params_norm", "Float64", "norm of the parameters"),
    _column("loss_scale", "Float64", "loss scale of mixed precision"),
    _column("elapsed_time_per_iteration_ms", "Float64", "mean wall time of an iteration over the interval, ms"),
    _column("throughput_per_gpu_tflops", "Float64", "model TFLOP/s per GPU"),
    _column("number_of_skipped_iterations", "Int64", "skipped iterations in the interval"),
    _column("number_of_nan_iterations", "Int64", "skipped iterations with a non-finite loss in the interval"),
    _column("is_complete", "Boolean", "false: the row was cut; only fields that were whole are kept", "never null"),
    _column("line_no", "Int64", "1-based line of the file where the row starts", "the source has no lines"),
)
"""Columns that an iterations table always has, in this order. Other keys of the log follow as Float64."""

OWN_COLUMNS = ("iteration", "attempt", "window", "is_complete", "line_no")
"""Columns of an iterations table that say which row it is; the others hold what was printed."""

VALIDATION_COLUMNS: tuple[Column, ...] = (
    _column("iteration", "Int64", "iteration after which the evaluation ran", "unknown"),
    _column("attempt", "Int64", "0-based number of the process start that this row belongs to", "never null"),
    _column("split", "String", "validation or test, with the set's name or index if the log has one", "never null"),
    _column("metric", "String", "the loss's name as a column name, such as lm_loss", "never null"),
    _column("value_nats", "Float64", "the loss, nats per token", "cut"),
    _column("line_no", "Int64", "1-based line of the file", "the source has no lines"),
)
"""Columns of a validation table: one row for each loss of each evaluation."""

_RENAMED = {"throughput_per_gpu_tflop_s_gpu": "throughput_per_gpu_tflops"}
_SEPARATORS = re.compile(r"[^0-9a-z.%]+")


@lru_cache(4096)
def column_name(key: str) -> str:
    """The column name for a log's or a TensorBoard tag's own key.

    Example:
        >>> column_name("elapsed time per iteration (ms)"), column_name("grad-norm"), column_name("mtp_1 loss")
        ('elapsed_time_per_iteration_ms', 'grad_norm', 'mtp_1_loss')
    """
    name = _SEPARATORS.sub("_", key.strip().lower()).strip("_")
    return _RENAMED.get(name, name)


def empty_frame(columns: tuple[Column, ...]) -> "pl.DataFrame":
    """A table with the given columns and no row."""
    import polars as pl

    return pl.DataFrame(schema={column.name: getattr(pl, column.dtype) for column in columns})


def conform(frame: "pl.DataFrame") -> "pl.DataFrame":
    """The same rows with the columns of an iterations table first, in their order and types, and the others after.

    A column that the frame lacks is all null.
    """
    import polars as pl

    known = {column.name: getattr(pl, column.dtype) for column in ITERATION_COLUMNS}
    first = (
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype, strict=False).alias(name)
        for name, dtype in known.items()
    )
    return frame.select(*first, *(name for name in frame.columns if name not in known))
