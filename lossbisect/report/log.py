"""A log that was read: as text for a terminal, and as a file for other programs."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.errors import LossbisectError
from lossbisect.parsers.runlog import RunLog

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FILE_KINDS", "pick_columns", "render_config", "render_notes", "render_summary", "render_table", "write"]

FILE_KINDS = (".parquet", ".csv", ".json", ".ndjson")
"""Endings of the files that `write` writes."""

_USUAL = (
    "iteration",
    "attempt",
    "lm_loss",
    "grad_norm",
    "learning_rate",
    "number_of_skipped_iterations",
    "elapsed_time_per_iteration_ms",
)
_HEAD_ROWS, _TAIL_ROWS = 12, 12
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render_summary(log: RunLog) -> str:
    """What was read, in a few lines: the dialect and why, rows, attempts, evaluations, configuration, failure."""
    rows = log.iterations
    lines = [f"{log.path}: {log.dialect}, as {log.dialect_reason}" if log.dialect_reason else f"{log.path}"]
    if rows.is_empty():
        lines.append("no row")
    else:
        span = f"iterations {min(rows['iteration'])} to {max(rows['iteration'])}"
        cut = rows.height - int(rows["is_complete"].sum())
        lines.append(f"{_counted(rows.height, 'row')}, {span}, {cut} cut, {_counted(len(log.attempts), 'attempt')}")
        losses = rows["lm_loss"].drop_nulls()
        if len(losses):
            lines.append(f"lm loss {losses[0]} to {losses[-1]} ({log.loss_kind.value})")
    if log.validation.height:
        lines.append(_counted(log.validation.height, "evaluated loss", "evaluated losses"))
    if log.config:
        lines.append(_counted(len(log.config), "setting"))
    if log.failure:
        lines.append(f"failed: {log.failure.kind}, line {log.failure.line_no}: {log.failure.text}")
    return _plain("\n  ".join(lines))


def render_table(frame: "pl.DataFrame", *, is_whole: bool) -> str:
    """Rows with every digit, right-aligned; ``-`` is a missing value.

    Args:
        frame: The columns to show.
        is_whole: Show all rows; else of a long table the first and last ones only.
    """
    n_hidden = 0 if is_whole else max(0, frame.height - _HEAD_ROWS - _TAIL_ROWS)
    head = frame.head(_HEAD_ROWS) if n_hidden else frame
    cells = [list(frame.columns), *([_cell(value) for value in row] for row in head.iter_rows())]
    tail = [[_cell(value) for value in row] for row in frame.tail(_TAIL_ROWS).iter_rows()] if n_hidden else []
    widths = [max(map(len, column)) for column in zip(*cells, *tail, strict=True)]

    def text(rows: list[list[str]]) -> list[str]:
        return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]

    more = [f"… {_counted(n_hidden, 'more row')}; -o FILE writes all"] if n_hidden else []
    return _plain("\n".join([*text(cells), *more, *text(tail)]))


def render_notes(log: RunLog, most: int | None = None) -> str:
    """What was repaired, left out or cut, each with its line."""
    shown = log.notes if most is None else log.notes[:most]
    lines = [f"{f'line {note.line_no}' if note.line_no else 'note'}: {note.text}" for note in shown]
    if len(shown) < len(log.notes):
        lines.append(f"… {_counted(len(log.notes) - len(shown), 'more note')}; --notes shows all")
    return "\n".join(map(_plain, lines))


def render_config(log: RunLog) -> str:
    """The dumped configuration, one setting a line."""
    return "\n".join(_plain(f"{key} = {value!r}").replace("\n", "\\n") for key, value in log.config.items())


def pick_columns(frame: "pl.DataFrame", names: Sequence[str] = (), width: int = 0) -> "pl.DataFrame":
    """The columns that were asked for; if none was, those with a value that fit a terminal's width, usual ones first.

    Raises:
        LossbisectError: There is no such column.
    """
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise LossbisectError(f"no column '{_plain(unknown[0])}'. There are: {', '.join(frame.columns)}.")
    if names:
        return frame.select(names)
    filled = [name for name in frame.columns if frame[name].null_count() < frame.height]
    losses = [name for name in filled if "loss" in name and name not in {"lm_loss", "loss_scale"}]
    order = [*(name for name in _USUAL if name in filled), *losses]
    if "attempt" in order and frame["attempt"].n_unique() < 2:
        order.remove("attempt")
    chosen: list[str] = []
    for name in order:
        width -= max(len(name), 12) + 2
        if width < 0 and chosen:
            break
        chosen.append(name)
    return frame.select(chosen or ["iteration"])


def write(frame: "pl.DataFrame", path: Path) -> None:
    """Write rows as Parquet, CSV, JSON (a list of objects) or NDJSON, by the file's ending.

    JSON has no NaN: ``"nan"``, ``"inf"`` and ``"-inf"`` stand for them, null for what is missing. In CSV, text that a
    spreadsheet would take for a formula gets an apostrophe before it.

    Raises:
        LossbisectError: The file can't be written.
    """
    import polars as pl
    from polars import selectors

    try:
        if path.suffix == ".parquet":
            frame.write_parquet(path)
        elif path.suffix == ".csv":
            is_formula = selectors.string().str.contains(f"^[{''.join(_FORMULA)}]".replace("-", r"\-"))
            safe = pl.when(is_formula).then(pl.lit("'") + selectors.string()).otherwise(selectors.string())
            frame.with_columns(safe.name.keep()).write_csv(path, float_scientific=None)
        else:
            rows = [json.dumps({name: _jsonable(value) for name, value in row.items()}) for row in frame.to_dicts()]
            text = "[\n" + ",\n".join(rows) + "\n]\n" if path.suffix == ".json" else "".join(f"{row}\n" for row in rows)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LossbisectError(f"{path}: can't be written: {error.strerror or error}. Name another file.") from None


def _jsonable(value: object) -> object:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _plain(text: str) -> str:
    """Text that a terminal can't take for a command."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text)
