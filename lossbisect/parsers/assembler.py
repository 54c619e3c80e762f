"""Events of a log, in file order, to attempts and columns; at the end, to a `RunLog`.

Columns are kept, not objects, so that a long log stays small.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.parsers.events import Config, Evaluation, Event, Finish, Rows, Stage, Start, StepTime, Version
from lossbisect.parsers.failures import worse
from lossbisect.parsers.records import ELAPSED_COLUMN, THROUGHPUT_COLUMN
from lossbisect.parsers.rows import HEAD_ROWS, AttemptFacts, gives_meaning, with_meaning
from lossbisect.parsers.runlog import (
    Attempt,
    Checkpoint,
    ConfigValue,
    Failure,
    LossKind,
    Memory,
    Note,
    RunLog,
    Timing,
)
from lossbisect.parsers.scan import Scan
from lossbisect.parsers.step_times import with_step_times
from lossbisect.schema import ITERATION_COLUMNS, VALIDATION_COLUMNS, conform, empty_frame

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["CONSOLE_QUANTUM_REL", "Assembler"]

CONSOLE_QUANTUM_REL = 5e-7
"""Half a unit in the seventh digit, for the smallest number with that digit."""

_CHUNK_ROWS = 100_000
_REMEMBERED_ROWS = 64
_REMEMBERED_EVALUATIONS = 16
_CLOCK_FELL_S = 2 * 3600.0  # more than the hour by which a clock goes back in autumn
_WALL_CLOCK_COLUMNS = frozenset({ELAPSED_COLUMN, THROUGHPUT_COLUMN})


@dataclass(slots=True)
class _State:
    """One attempt while its lines come in."""

    attempt: Attempt
    stage: Stage | None = None
    last_iteration: int | None = None
    total: int = 0
    stamp: str = ""
    resumed_at: int | None = None
    version: str | None = None
    has_evaluation: bool = False
    is_finished: bool = False
    config: dict[str, ConfigValue] = field(default_factory=dict)
    dumps: set[str] = field(default_factory=set)
    failure: Failure | None = None
    first_stamps: list[str] = field(default_factory=list)
    recent: deque[tuple[Rows, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_ROWS))


class Assembler:
    """Events in, one `RunLog` out.

    Attributes:
        has_rows: Whether a training row was seen.
        has_start: Whether a process start or a dump of the configuration was seen.
        has_failure: Whether a failure was seen.
    """

    def __init__(self, path: Path, columns: Collection[str] | None = None) -> None:
        """An empty run.

        Args:
            path: The file.
            columns: The columns that are wanted, if not all; others are kept only as far as rows need them.
        """
        self._path = path
        self._states: list[_State] = []
        self._table = _Table(columns)
        self._evaluations: list[tuple[int | None, int, str, str, float | None, int]] = []
        self._notes: list[Note] = []
        self._checkpoints: list[Checkpoint] = []
        self._memory: list[Memory] = []
        self._timings: list[Timing] = []
        self._step_times: list[StepTime] = []
        self._n_duplicates = 0
        self._first_duplicate: int | None = None
        self._version: str | None = None
        self.has_rows = self.has_start = self.has_failure = False

    def note(self, line_no: int | None, kind: str, text: str) -> None:
        """Add a note."""
        self._notes.append(Note(line_no=line_no, kind=kind, text=text))

    def add_scan(self, scan: Scan) -> None:
        """Take what the next block of the file holds."""
        for event in scan.events:
            self.add(event)
        self._checkpoints.extend(scan.checkpoints)
        self._memory.extend(scan.memory)
        self._timings.extend(scan.timings)
        self._step_times.extend(scan.step_times)

    def add(self, event: Event) -> None:
        """Take the next event of the file."""
        match event:
            case Rows():
                self._add_rows(event)
            case Evaluation():
                self._add_evaluation(event)
            case Start():
                state = self._reach(event.stage, event.line_no)
                if event.iteration is not None:
                    state.resumed_at = event.iteration
            case Config():
                state = self._reach(Stage.CONFIG, event.line_no, dump=event.kind)
                state.config.update(event.values)
                state.dumps.add(event.kind)
            case Version():
                self._version = event.text
                if self._states and self._states[-1].last_iteration is None:
                    self._states[-1].version = event.text
            case Finish():
                self._current(event.line_no).is_finished = True
            case Failure():
                self.has_failure = True
                state = self._current(event.line_no)
                # After an exit that was asked for, launchers still report the signal that asked.
                if not (state.is_finished and event.kind == "signal"):
                    state.failure = worse(state.failure, event)

    def finish(
        self,
        dialect: str,
        *,
        loss_kind: LossKind = LossKind.INTERVAL_MEAN,
        loss_quantum_rel: float = CONSOLE_QUANTUM_REL,
        dialect_reason: str = "",
    ) -> RunLog:
        """The run. `add` must not be called afterwards."""
        import polars as pl

        iterations = empty_frame(ITERATION_COLUMNS)
        if self.has_rows:
            facts = [
                AttemptFacts(
                    index=state.attempt.index,
                    has_start=state.stage is not None,
                    resumed_at=state.resumed_at,
                    log_interval=_log_interval(state.config),
                    version=state.version,
                    stamps=tuple(state.first_stamps),
                )
                for state in self._states
            ]
            # No name holds a table on the way: each would be a second copy of it.
            meaning = with_meaning(self._table.taken(), facts, resets_every_row=dialect != "megatron-lm")
            self._notes.extend(meaning.notes)
            iterations = conform(with_step_times(meaning.frame, self._step_times))
        schema = {column.name: getattr(pl, column.dtype) for column in VALIDATION_COLUMNS}
        if self._n_duplicates:
            text = f"{self._n_duplicates} rows that another rank printed too were left out; here is the first."
            self.note(self._first_duplicate, "duplicate-rows", text)
        for state in self._states[:-1]:
            if state.failure:
                text = f"Attempt {state.attempt.index} ended: {state.failure.text}"
                self.note(state.failure.line_no, f"attempt-{state.failure.kind}", text)
        config = self._config()
        return RunLog(
            path=self._path,
            dialect=dialect,
            iterations=iterations,
            validation=pl.DataFrame(self._evaluations, schema=schema, orient="row"),
            config=config,
            attempts=tuple(state.attempt for state in self._states),
            loss_kind=loss_kind,
            loss_quantum_rel=loss_quantum_rel,
            notes=tuple(sorted(self._notes, key=lambda note: note.line_no or 0)),
            failure=self._states[-1].failure if self._states else None,
            checkpoints=tuple(self._checkpoints),
            memory=tuple(self._memory),
            timings=tuple(self._timings),
            dialect_reason=dialect_reason,
            planned_iterations=next((state.total for state in reversed(self._states) if state.total), None),
        )

    def _current(self, line_no: int) -> _State:
        return self._states[-1] if self._states else self._begin(line_no, "start of the file")

    def _begin(self, line_no: int, reason: str) -> _State:
        attempt = Attempt(index=len(self._states), line_no=line_no, reason=reason)
        self._states.append(_State(attempt=attempt, version=self._version))
        return self._states[-1]

    def _reach(self, stage: Stage, line_no: int, *, dump: str = "") -> _State:
        """The attempt of a starting process that has come to a stage: the one that is starting, or the next."""
        self.has_start = True
        state = self._states[-1] if self._states else None
        if (
            state is None
            or state.last_iteration is not None
            or state.has_evaluation
            or state.is_finished
            or (state.stage is not None and stage < state.stage)
            or (state.failure is not None and dump in state.dumps)
        ):
            state = self._begin(line_no, "start mark")
        state.failure = None  # the start went on: whatever it was, it ended nothing
        state.stage = max(stage, state.stage or stage)
        return state

    def _add_rows(self, rows: Rows) -> None:
        """Add rows, all at once where they simply go on, as nearly all do."""
        self.has_rows = True
        state = self._current(int(rows.line_nos[0]))
        if not _goes_on(rows, state):
            for index in range(len(rows)):
                self._add_row(rows, index)
            return
        self._table.extend(rows, state.attempt.index)
        _advance(state, rows)

    def _add_row(self, rows: Rows, index: int) -> None:
        state = self._states[-1]
        row = rows.part(index, index + 1)
        if state.last_iteration is not None:
            if _is_duplicate(row, state):
                self._n_duplicates += 1
                self._first_duplicate = self._first_duplicate or int(row.line_nos[0])
                return
            if reason := _restart_reason(row, state):
                state = self._begin(int(row.line_nos[0]), reason)
        self._table.extend(row, state.attempt.index)
        _advance(state, row)

    def _add_evaluation(self, evaluation: Evaluation) -> None:
        state = self._current(evaluation.line_no)
        state.has_evaluation = True
        iteration = evaluation.iteration if evaluation.iteration is not None else state.last_iteration
        for metric, value in evaluation.values.items():
            row = (iteration, state.attempt.index, evaluation.split, metric, value, evaluation.line_no)
            if not any(repr(row[:5]) == repr(other[:5]) for other in self._evaluations[-_REMEMBERED_EVALUATIONS:]):
                self._evaluations.append(row)

    def _config(self) -> dict[str, ConfigValue]:
        """The last dump; an attempt that prints none (a grep'd part, a crash) leaves the one before."""
        config: dict[str, ConfigValue] = {}
        for state in self._states:
            if not state.config:
                continue
            changed = [key for key, value in state.config.items() if config and config.get(key) != value]
            if changed:
                names = ", ".join(changed[:5]) + (", …" if len(changed) > 5 else "")
                text = f"Attempt {state.attempt.index} has another configuration than the one before: {names}."
                self.note(state.attempt.line_no, "config-changed", text)
            config = state.config
        return config


class _Table:
    """Columns that grow by rows of changing shape."""

    def __init__(self, columns: Collection[str] | None) -> None:
        self._wanted = columns
        self._chunks: list[pl.DataFrame] = []
        self._rows: list[tuple[Rows, int]] = []
        self._n_rows = 0

    def extend(self, rows: Rows, attempt: int) -> None:
        """Add rows."""
        self._rows.append((rows, attempt))
        self._n_rows += len(rows)
        if self._n_rows >= _CHUNK_ROWS:
            self._flush()

    def taken(self) -> "pl.DataFrame":
        """All rows, of which none stays here. There must be one."""
        import polars as pl

        self._flush()
        chunks, self._chunks = self._chunks, []
        return pl.concat(chunks, how="diagonal", rechunk=False)

    def _flush(self) -> None:
        import numpy as np
        import polars as pl

        if not self._n_rows:
            return
        columns: dict[str, NDArray[np.float64]] = {}
        is_there: dict[str, NDArray[np.bool_]] = {}
        start = 0
        for rows, _ in self._rows:
            stop = start + len(rows)
            for name, values in zip(rows.columns, rows.values, strict=True):
                if self._wanted is not None and name not in self._wanted and not gives_meaning(name):
                    continue
                if name not in columns:
                    columns[name] = np.empty(self._n_rows)
                    is_there[name] = np.zeros(self._n_rows, np.bool_)
                columns[name][start:stop] = values
                is_there[name][start:stop] = True
            start = stop
        counts = [len(rows) for rows, _ in self._rows]
        fixed = {
            "iteration": np.concatenate([rows.iterations for rows, _ in self._rows]),
            "attempt": np.repeat([attempt for _, attempt in self._rows], counts),
            "total": np.concatenate([rows.totals for rows, _ in self._rows]),
            "is_complete": np.repeat([rows.is_complete for rows, _ in self._rows], counts),
            "line_no": np.concatenate([rows.line_nos for rows, _ in self._rows]),
        }
        frame = pl.DataFrame({**fixed, **columns})
        missing = [name for name, mask in is_there.items() if not mask.all()]
        frame = frame.with_columns(
            pl.when(pl.Series(is_there[name])).then(name).otherwise(None).alias(name) for name in missing
        )
        self._chunks.append(frame)
        self._rows, self._n_rows = [], 0


def _goes_on(rows: Rows, state: _State) -> bool:
    """Whether rows only add to an attempt: iterations rise, nothing else changes."""
    iterations, totals, stamps = rows.iterations, rows.totals, rows.stamps
    last, total = state.last_iteration, state.total
    if last is None:
        last, total = iterations[0] - 1, totals[0]
    return bool(
        iterations[0] > last
        and (iterations[1:] > iterations[:-1]).all()
        and (totals == total).all()
        and state.stamp <= stamps[0].decode()
        and (stamps[1:] >= stamps[:-1]).all()
    )


def _advance(state: _State, rows: Rows) -> None:
    state.failure = None  # training went on: whatever it was, it ended nothing
    state.is_finished = False
    state.last_iteration, state.total = int(rows.iterations[-1]), int(rows.totals[-1])
    state.stamp = rows.stamps[-1].decode() or state.stamp
    if len(state.first_stamps) < HEAD_ROWS:
        state.first_stamps.extend(map(bytes.decode, rows.stamps[: HEAD_ROWS - len(state.first_stamps)]))
    count = len(rows)
    state.recent.extend((rows, index) for index in range(max(0, count - _REMEMBERED_ROWS), count))


def _restart_reason(row: Rows, state: _State) -> str:
    """Why a row can't belong to the attempt that is running, or ``""``."""
    iteration, total, stamp = int(row.iterations[0]), int(row.totals[0]), row.stamps[0].decode()
    last = state.last_iteration or 0
    if total != state.total:
        return f"total changed from {state.total} to {total}"
    if iteration <= last:
        return f"iteration fell from {last} to {iteration}"
    if stamp and stamp < state.stamp and _seconds(state.stamp, stamp) < -_CLOCK_FELL_S:
        return f"clock fell from {state.stamp} to {stamp}"
    return ""


def _seconds(first: str, second: str) -> float:
    from datetime import datetime

    try:
        return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()
    except ValueError:
        return 0.0


def _is_duplicate(row: Rows, state: _State) -> bool:
    """Whether another rank printed this very row before, or the same line was collected twice."""
    if state.last_iteration is None or row.iterations[0] > state.last_iteration:
        return False
    for others, index in reversed(state.recent):
        if others.iterations[index] == row.iterations[0]:
            return _is_same(row, others, index)
    return False


def _is_same(row: Rows, others: Rows, index: int) -> bool:
    """Whether two rows of one iteration are one: all alike, or alike but for the clocks of two ranks."""
    if row.totals[0] != others.totals[index]:
        return False
    is_other_rank = row.label != others.label
    if not is_other_rank and row.stamps[0] != others.stamps[index]:
        return False
    ignored = _WALL_CLOCK_COLUMNS if is_other_rank else frozenset[str]()
    return _values(row, 0, ignored) == _values(others, index, ignored)


def _values(rows: Rows, index: int, ignored: frozenset[str]) -> dict[str, str]:
    columns = zip(rows.columns, rows.values, strict=True)
    return {name: repr(column[index]) for name, column in columns if name not in ignored}


def _log_interval(config: dict[str, ConfigValue]) -> int | None:
    value = config.get("log_interval", config.get("logger.log_interval"))
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
