"""Sources that give one value at a time (a tag, an iteration, a number) to a `RunLog`.

Event files, golden files and exported histories all do. Their values are the iteration's own, no mean over an interval.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.errors import ParseError
from lossbisect.parsers.records import data_column
from lossbisect.parsers.runlog import Attempt, LossKind, Note, RunLog
from lossbisect.schema import VALIDATION_COLUMNS, column_name, conform, empty_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Points", "column_of_tag", "number", "whole_number"]

_TWIN = " vs samples"  # the same numbers over consumed samples
_RENAMED = {
    "batch_size": "global_batch_size",
    "lr": "learning_rate",
    "loss": "lm_loss",
    "lm_loss_value": "lm_loss",
    "samples_vs_steps": "consumed_samples",
}
_VALIDATION = re.compile(
    r"(?:val/(?P<mlflow>.+)|(?P<key>.+?) (?:value-)?validation(?:[ -]?(?P<set>[\w.-]+))?|(?P<old>.+) value-validation)"
)
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}


def column_of_tag(tag: str) -> str:
    """The column of a tag; ``""`` if it has none: a twin over another axis, a perplexity, or no letter at all."""
    if tag.endswith((_TWIN, " ppl")):
        return ""
    name = data_column(tag)
    return _RENAMED.get(name, name)


def number(value: object) -> float | None:
    """A JSON or CSV value as a float: null and empty text are None, words such as ``nan`` what they say.

    Raises:
        ValueError: It is no number.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{str(value)[:40]!r} is no number") from None


def whole_number(value: object) -> int:
    """A JSON or CSV value as an iteration.

    Raises:
        ValueError: It is no whole number of at most 63 bits.
    """
    found = number(value)
    if found is None or not math.isfinite(found) or found != int(found) or not 0 <= found < 2**62:
        raise ValueError(f"{str(value)[:40]!r} is no iteration")
    return int(found)


class Points:
    """Values as they come; of two with one tag and iteration the later wins."""

    def __init__(self, path: Path, dialect: str, dialect_reason: str) -> None:
        self._path = path
        self._dialect, self._dialect_reason = dialect, dialect_reason
        self._columns: dict[str, dict[int, float]] = {}
        self._validation: dict[tuple[int, str, str], float] = {}
        self._lines: dict[int, int] = {}
        self._notes: list[Note] = []

    def note(self, line_no: int | None, kind: str, text: str) -> None:
        """Add a note."""
        self._notes.append(Note(line_no=line_no, kind=kind, text=text))

    def add(self, tag: str, iteration: int, value: float | None, line_no: int | None = None) -> None:
        """Add a value; one that is None, and a tag without a column, are left out."""
        column = column_of_tag(tag)
        if value is None or not column:
            return
        if match := _VALIDATION.fullmatch(tag):
            split = f"validation-{match['set']}" if match["set"] else "validation"
            metric = column_name(match["mlflow"] or match["key"] or match["old"])
            self._validation[iteration, split, _RENAMED.get(metric, metric)] = value
            return
        self._columns.setdefault(column, {})[iteration] = value
        if line_no is not None:
            self._lines.setdefault(iteration, line_no)

    def log(self, *, loss_quantum_rel: float = 0.0, config: Mapping[str, str] | None = None) -> RunLog:
        """The run: rows rise by iteration, ``window`` is 1.

        Raises:
            ParseError: There is no value.
        """
        import polars as pl

        if not self._columns:
            raise ParseError(f"{self._path}: holds no value of a training iteration.")
        iterations = sorted({iteration for column in self._columns.values() for iteration in column})
        frame = pl.DataFrame(
            {
                "iteration": pl.Series(iterations, dtype=pl.Int64),
                **{name: _series(column, iterations) for name, column in self._columns.items()},
            }
        )
        frame = frame.with_columns(
            pl.Series("line_no", [self._lines.get(iteration) for iteration in iterations], dtype=pl.Int64),
            attempt=pl.lit(0),
            window=pl.lit(1),
            is_complete=pl.lit(True),
        )
        return RunLog(
            path=self._path,
            dialect=self._dialect,
            iterations=conform(frame),
            validation=self._validation_frame(),
            config=dict(config or {}),
            attempts=(Attempt(index=0, line_no=1, reason="start of the file"),),
            loss_kind=LossKind.PER_ITERATION,
            loss_quantum_rel=loss_quantum_rel,
            notes=tuple(self._notes),
            dialect_reason=self._dialect_reason,
        )

    def _validation_frame(self) -> "pl.DataFrame":
        import polars as pl

        empty = empty_frame(VALIDATION_COLUMNS)
        rows = [(at, 0, split, metric, value, None) for (at, split, metric), value in sorted(self._validation.items())]
        return pl.DataFrame(rows, schema=empty.schema, orient="row")


def _series(column: Mapping[int, float], iterations: Sequence[int]) -> "pl.Series":
    import polars as pl

    return pl.Series([column.get(iteration) for iteration in iterations], dtype=pl.Float64)
