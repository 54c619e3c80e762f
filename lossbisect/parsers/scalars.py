"""Our own full-precision scalars: one JSON object a line, ``{"tag": "lm loss", "iteration": 1, "value": 10.377}``.

A value of null says in ``nonfinite`` what it stands for: ``nan``, ``inf`` or ``-inf``.
"""

import json
from pathlib import Path

from lossbisect.errors import ParseError
from lossbisect.parsers.records import data_column
from lossbisect.parsers.runlog import Attempt, LossKind, Note, RunLog
from lossbisect.parsers.source import Block, BlockReader
from lossbisect.schema import VALIDATION_COLUMNS, conform, empty_frame

__all__ = ["is_scalars", "read_scalars"]

DIALECT = "lossbisect"

_TWIN = " vs samples"  # the same numbers over consumed samples
_RENAMED = {"batch_size": "global_batch_size"}
_NONFINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def is_scalars(head: str) -> bool:
    """Whether a file that starts so is one of ours."""
    line = head.lstrip().partition("\n")[0]
    return line.startswith("{") and '"tag"' in line and '"iteration"' in line


def read_scalars(reader: BlockReader, path: Path) -> RunLog:
    """One row an iteration; of two lines with one tag and iteration the later wins.

    Rows rise by iteration. ``window`` is 1: a value is the iteration's own.

    Raises:
        ParseError: A line other than the last isn't such an object.
    """
    import polars as pl

    values: dict[str, dict[int, float]] = {}
    line_nos: dict[int, int] = {}
    notes: list[Note] = []
    while (block := reader.read()) is not None:
        _add_block(block, path, values, line_nos, notes)
    iterations = sorted({iteration for column in values.values() for iteration in column})
    frame = pl.DataFrame(
        {
            "iteration": pl.Series(iterations, dtype=pl.Int64),
            **{
                name: pl.Series([column.get(iteration) for iteration in iterations], dtype=pl.Float64)
                for name, column in values.items()
            },
        }
    )
    frame = frame.with_columns(
        pl.Series("line_no", [line_nos[iteration] for iteration in iterations], dtype=pl.Int64),
        pl.lit(0).alias("attempt"),
        pl.lit(1).alias("window"),
        pl.lit(True).alias("is_complete"),
    )
    return RunLog(
        path=path,
        dialect=DIALECT,
        iterations=conform(frame),
        validation=empty_frame(VALIDATION_COLUMNS),
        config={},
        attempts=(Attempt(index=0, line_no=1, reason="start of the file"),),
        loss_kind=LossKind.PER_ITERATION,
        loss_quantum_rel=0.0,
        notes=tuple(notes),
    )


def _add_block(
    block: Block,
    path: Path,
    values: dict[str, dict[int, float]],
    line_nos: dict[int, int],
    notes: list[Note],
) -> None:
    lines = block.data.split(b"\n")
    for line_no, line in enumerate(lines, start=block.line_no):
        text = line.strip()
        if not text:
            continue
        try:
            tag, iteration, value = _scalar(text)
        except ValueError as error:
            if block.is_last and line_no == block.line_no + len(lines) - 1:
                # No line end follows: the writer was killed in mid-line.
                notes.append(Note(line_no=line_no, kind="cut-row", text="The last line was cut; it was left out."))
                return
            raise ParseError(
                f"{path}:{line_no}: {error}. Each line must be an object like "
                '{"tag": "lm loss", "iteration": 1, "value": 10.4}.'
            ) from None
        if tag.endswith(_TWIN):
            continue
        name = data_column(tag)
        name = _RENAMED.get(name, name)
        values.setdefault(name, {})[iteration] = value
        line_nos.setdefault(iteration, line_no)


def _scalar(text: bytes) -> tuple[str, int, float]:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(item, dict):
        raise ValueError("not a JSON object")
    tag, iteration, value = item.get("tag"), item.get("iteration"), item.get("value")
    if not isinstance(tag, str) or not data_column(tag):
        raise ValueError("'tag' is missing or no text")
    if not isinstance(iteration, int) or isinstance(iteration, bool) or not -(2**63) <= iteration < 2**63:
        raise ValueError("'iteration' is missing or no whole number")
    if value is None:
        value = _NONFINITE.get(str(item.get("nonfinite", "nan")))
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("'value' is missing or no number")
    try:
        return tag, iteration, float(value)
    except OverflowError:
        raise ValueError("'value' is too large") from None
