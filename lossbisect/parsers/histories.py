"""Tables of values: our own export, and histories exported from W&B and MLflow, as Parquet, CSV, JSON or NDJSON."""

import csv
import io
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossbisect.errors import ParseError
from lossbisect.parsers.pointwise import Points, number, whole_number
from lossbisect.parsers.runlog import Attempt, LossKind, RunLog
from lossbisect.schema import ITERATION_COLUMNS, VALIDATION_COLUMNS, conform, empty_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_history", "read_csv", "read_history", "read_mlflow_store", "read_parquet"]

_AXES = ("_step", "Step", "trainer/global_step", "step")
_METRIC_NAMES = ("key", "metric")  # of MLflow's tables of one value a row
_NOT_VALUES = frozenset({"_step", "_timestamp", "_runtime", "_wandb", "timestamp", "wall_time", "run_id", "Step"})
_OURS = frozenset({"iteration", "attempt", "window", "is_complete"})
_QUANTUM_REL = 5e-7


def is_history(keys: Iterable[str]) -> bool:
    """Whether a table with these columns is one that `read_history` reads."""
    names = set(keys)
    is_long = "step" in names and "value" in names and not names.isdisjoint(_METRIC_NAMES)
    return names >= _OURS or is_long or any(axis in names for axis in _AXES if axis != "step")


def read_csv(text: str, path: Path) -> RunLog:
    """The run that a CSV file tells.

    Raises:
        ParseError: It has no column of iterations, or a value is no number.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
    except csv.Error as error:
        raise ParseError(f"{path}: no readable CSV: {error}.") from None
    return read_history([{key: value for key, value in row.items() if key} for row in rows], path, first_line=2)


def read_history(rows: list[dict[str, Any]], path: Path, first_line: int | None = None) -> RunLog:
    """The run that a list of rows tells: one an iteration with a column a metric, or one a value (``key``, ``value``).

    Args:
        rows: The rows.
        path: Where they are from.
        first_line: The line of the first row, if each has its own.

    Raises:
        ParseError: It has no column of iterations, or a value is no number.
    """
    keys = {key for row in rows for key in row}
    if keys >= _OURS:
        _refuse_several(keys, path)
        return _read_own(rows, path)
    axis = next((axis for axis in _AXES if axis in keys), None)
    if axis is None:
        raise ParseError(f"{path}: no column of iterations ({', '.join(_AXES)}).")
    metric_name = next((name for name in _METRIC_NAMES if name in keys and "value" in keys), None)
    dialect = "mlflow" if metric_name else "wandb"
    shape = "a row a value" if metric_name else "a row an iteration"
    points = Points(path, dialect, f"it has {shape}, by '{axis}'")
    for index, row in enumerate(rows):
        line_no = first_line + index if first_line is not None else None
        where = f"{path}:{line_no}" if line_no else f"{path}: row {index + 1}"
        try:
            iteration = whole_number(row.get(axis))
            if metric_name:
                points.add(str(row[metric_name]), iteration, number(row["value"]), line_no)
                continue
            for key, value in row.items():
                if key != axis and key not in _NOT_VALUES and not key.startswith("_") and _is_number(value):
                    points.add(_tag(key), iteration, number(value), line_no)
        except (ValueError, KeyError) as error:
            raise ParseError(f"{where}: {error}.") from None
    return points.log()


def read_parquet(path: Path) -> RunLog:
    """The run of our own Parquet export.

    Raises:
        ParseError: It is damaged, or another table.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise ParseError(f"{path}: no readable Parquet: {str(error).splitlines()[0]}.") from None
    if not set(frame.columns) >= _OURS:
        return read_history(frame.to_dicts(), path)
    _refuse_several(frame.columns, path)
    return _own(frame, path)


def _refuse_several(columns: Collection[str], path: Path) -> None:
    """Refuse what 'parse -o' wrote of several logs: as one run, their rows would say something else."""
    if "log" in columns:
        raise ParseError(f"{path}: holds several logs. Write each into a file of its own.")


def read_mlflow_store(folder: Path) -> RunLog:
    """The run of an MLflow file store: ``metrics/NAME`` has a line ``timestamp value step`` a value.

    Raises:
        ParseError: A line is another.
    """
    points = Points(folder, "mlflow", "it has a folder 'metrics'")
    metrics = folder / "metrics"
    for file in sorted(path for path in metrics.rglob("*") if path.is_file()):
        tag = file.relative_to(metrics).as_posix()
        for line_no, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
            try:
                _, value, step = line.split()[:3]
                points.add(tag, whole_number(step), number(value))
            except ValueError as error:
                raise ParseError(f"{file}:{line_no}: {error}.") from None
    params = folder / "params"
    config = {}
    if params.is_dir():
        files = (path for path in sorted(params.iterdir()) if path.is_file())
        config = {path.name: path.read_text(errors="replace").strip() for path in files}
    return points.log(config=config)


def _tag(key: str) -> str:
    """W&B's CSV names a column after the run: ``run-name - lm loss``."""
    return key.rpartition(" - ")[2]


def _is_number(value: object) -> bool:
    try:
        number(value)
    except ValueError:
        return False  # text, a histogram, an image
    return True


def _read_own(rows: list[dict[str, Any]], path: Path) -> RunLog:
    import polars as pl

    dtypes = {column.name: column.dtype for column in ITERATION_COLUMNS}
    columns: dict[str, pl.Series] = {}
    for name in {key: None for row in rows for key in row}:
        dtype = getattr(pl, dtypes.get(name, "Float64"))
        try:
            values = [_typed(row.get(name), dtypes.get(name, "Float64")) for row in rows]
            columns[name] = pl.Series(name, values, dtype=dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ParseError(f"{path}: column '{name}': {error}.") from None
    return _own(pl.DataFrame(columns), path)


def _typed(value: object, dtype: str) -> float | int | bool | None:
    if dtype == "Boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    found = number(value)
    if found is None or dtype != "Int64":
        return found
    if not -(2.0**62) < found < 2.0**62:  # neither is NaN
        raise ValueError(f"{str(value)[:40]!r} is no whole number")
    return int(found)


def _own(frame: "pl.DataFrame", path: Path) -> RunLog:
    """Values with seven digits at most came from a console log, whose losses are means over an interval."""
    import polars as pl

    frame = conform(frame)
    if frame["iteration"].null_count() or frame["attempt"].null_count():
        raise ParseError(f"{path}: a row has no iteration or no attempt.")
    losses = [value for value in frame["lm_loss"].drop_nulls().to_list() if value == value]
    is_console = all(value == float(f"{value:.6E}") for value in losses)
    starts = frame.group_by("attempt", maintain_order=True).agg(pl.col("line_no").first())
    return RunLog(
        path=path,
        dialect="lossbisect",
        iterations=frame,
        validation=empty_frame(VALIDATION_COLUMNS),
        config={},
        attempts=tuple(
            Attempt(index=index, line_no=line_no or 1, reason="as exported") for index, line_no in starts.iter_rows()
        ),
        loss_kind=LossKind.INTERVAL_MEAN if is_console else LossKind.PER_ITERATION,
        loss_quantum_rel=_QUANTUM_REL if is_console else 0.0,
        dialect_reason="it is a table that 'lossbisect parse -o' wrote",
    )
