"""Hand-made logs: the columns that a comparison looks at, without a parser."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from lossbisect.parsers.runlog import Attempt, ConfigValue, Failure, LossKind, Note, RunLog
from lossbisect.schema import ITERATION_COLUMNS, VALIDATION_COLUMNS, empty_frame

__all__ = ["FLOAT32", "make_log"]

FLOAT32: dict[str, ConfigValue] = {"params_dtype": "torch.float32", "bf16": False, "fp16": False}
"""The part of a dump of Megatron-LM's arguments that says: computes in float32."""


def make_log(
    losses: Sequence[float | None],
    *,
    path: str = "train.log",
    first: int = 1,
    window: int | Sequence[int] = 1,
    config: Mapping[str, ConfigValue] = FLOAT32,
    loss_kind: LossKind = LossKind.INTERVAL_MEAN,
    loss_quantum_rel: float = 5e-7,
    notes: tuple[Note, ...] = (),
    failure: Failure | None = None,
    planned: int | None = None,
    **columns: Sequence[object],
) -> RunLog:
    """A log with one row for each loss, from iteration `first` on; other columns as they are given."""
    n_rows = len(losses)
    values: dict[str, Sequence[object]] = {
        "iteration": range(first, first + n_rows),
        "attempt": [0] * n_rows,
        "window": [window] * n_rows if isinstance(window, int) else window,
        "lm_loss": losses,
        "is_complete": [True] * n_rows,
        "line_no": range(10, 10 + n_rows),
        **columns,
    }
    schema = empty_frame(ITERATION_COLUMNS).schema
    frame = pl.DataFrame(
        {
            name: pl.Series(
                name, list(values.get(name, [None] * n_rows)), dtype=schema.get(name, pl.Float64), strict=False
            )
            for name in [*schema, *(name for name in values if name not in schema)]
        }
    )
    return RunLog(
        path=Path(path),
        dialect="megatron-lm",
        iterations=frame,
        validation=empty_frame(VALIDATION_COLUMNS),
        config=dict(config),
        attempts=(Attempt(index=0, line_no=1, reason="start of the file"),),
        loss_kind=loss_kind,
        loss_quantum_rel=loss_quantum_rel,
        notes=notes,
        failure=failure,
        planned_iterations=planned,
    )
