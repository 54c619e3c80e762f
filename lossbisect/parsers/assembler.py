"""Events of a log, in file order, to attempts and columns; at the end, to a `RunLog`.

Columns are kept, not objects, so that a long log stays small.
"""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.parsers.events import Config, Evaluation, Event, Finish, Rows, Stage, Start, Version
from lossbisect.parsers.failures import worse
from lossbisect.parsers.records import ELAPSED_COLUMN
from lossbisect.parsers.rows import AttemptFacts, with_meaning
from lossbisect.parsers.runlog import Attempt, ConfigValue, Failure, LossKind, Note, RunLog
from lossbisect.schema import ITERATION_COLUMNS, VALIDATION_COLUMNS, conform, empty_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CONSOLE_QUANTUM_REL", "Assembler"]

CONSOLE_QUANTUM_REL = 5e-7
"""Half a unit in the seventh digit, for the smallest number with that digit."""

_CHUNK_ROWS = 100_000
_REMEMBERED_ROWS = 64
_REMEMBERED_EVALUATIONS = 16
_CLOCK_FELL_S = 2 * 3600.0  # more than the hour by which a clock goes back in autumn
_WALL_CLOCK_COLUMNS = frozenset({ELAPSED_COLUMN, "throughput_per_gpu_tflops"})


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
    recent: deque[tuple[Rows, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_ROWS))


class Assembler:
    """Events in, one `RunLog` out.

    Attributes:
        has_rows: Whether a training row was seen.
        has_start: Whether a process start or a dump of the configuration was seen.
        has_failure: Whether a failure was seen.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._states: list[_State] = []
        self._table = _Table()
        self._evaluations: list[tuple[int | None, int, str, str, float | None, int]] = []
        self._notes: list[Note] = []
        self._n_duplicates = 0
        self._version: str | None = None
        self.has_rows = self.has_start = self.has_failure = False

    def note(self, line_no: int | None, kind: str, text: str) -> None:
        """Add a note."""
        self._notes.append(Note(line_no=line_no, kind=kind, text=text))

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
    ) -> RunLog:
        """The run. `add` must not be called afterwards."""
        import polars as pl

        frame = self._table.frame()
        iterations = empty_frame(ITERATION_COLUMNS)
        if frame is not None:
            facts = [
                AttemptFacts(
                    index=state.attempt.index,
                    has_start=state.stage is not None,
                    resumed_at=state.resumed_at,
                    log_interval=_log_interval(state.config),
                    version=state.version,
                )
                for state in self._states
            ]
            meaning = with_meaning(frame, facts, resets_every_row=dialect != "megatron-lm")
            self._notes.extend(meaning.notes)
            iterations = conform(meaning.frame)
        schema = {column.name: getattr(pl, column.dtype) for column in VALIDATION_COLUMNS}
        if self._n_duplicates:
            self.note(None, "duplicate-rows", f"{self._n_duplicates} rows that another rank printed too were left out.")
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
        state = self._current(rows.line_nos[0])
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
                return
            if reason := _restart_reason(row, state):
                state = self._begin(row.line_nos[0], reason)
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

    def __init__(self) -> None:
        self._columns: dict[str, list[float | None]] = {}
        self._fixed: dict[str, list[int | str | bool]] = {}
        self._n_rows = 0
        self._chunks: list[pl.DataFrame] = []
        self._reset()

    def _reset(self) -> None:
        self._columns = {}
        names = ("iteration", "attempt", "total", "stamp", "is_complete", "line_no")
        self._fixed = {name: [] for name in names}
        self._n_rows = 0

    def extend(self, rows: Rows, attempt: int) -> None:
        """Add rows."""
        count = len(rows)
        self._fixed["iteration"].extend(rows.iterations)
        self._fixed["attempt"].extend([attempt] * count)
        self._fixed["total"].extend(rows.totals)
        self._fixed["stamp"].extend(rows.stamps)
        self._fixed["is_complete"].extend([rows.is_complete] * count)
        self._fixed["line_no"].extend(rows.line_nos)
        for name, values in zip(rows.columns, rows.values, strict=True):
            column = self._columns.setdefault(name, [])
            if len(column) < self._n_rows:
                column.extend([None] * (self._n_rows - len(column)))
            column.extend(values)
        self._n_rows += count
        if self._n_rows >= _CHUNK_ROWS:
            self._flush()

    def frame(self) -> "pl.DataFrame | None":
        """All rows so far; None if there is none."""
        import polars as pl

        self._flush()
        return pl.concat(self._chunks, how="diagonal") if self._chunks else None

    def _flush(self) -> None:
        import polars as pl

        if not self._n_rows:
            return
        types = {"stamp": pl.String(), "is_complete": pl.Boolean()}
        fixed = [pl.Series(name, values, dtype=types.get(name, pl.Int64())) for name, values in self._fixed.items()]
        for values in self._columns.values():
            values.extend([None] * (self._n_rows - len(values)))
        others = [pl.Series(name, values, dtype=pl.Float64()) for name, values in self._columns.items()]
        self._chunks.append(pl.DataFrame([*fixed, *others]))
        self._reset()


def _goes_on(rows: Rows, state: _State) -> bool:
    """Whether rows only add to an attempt: iterations rise, nothing else changes."""
    iterations, stamps = rows.iterations, rows.stamps
    last = state.last_iteration
    if last is None:
        if len(iterations) == 1:
            return True
        last, total = iterations[0] - 1, rows.totals[0]
    else:
        total = state.total
    return (
        all(before < after for before, after in zip([last, *iterations], iterations, strict=False))
        and rows.totals.count(total) == len(rows.totals)
        and all(before <= after for before, after in zip([state.stamp, *stamps], stamps, strict=False))
    )


def _advance(state: _State, rows: Rows) -> None:
    state.failure = None  # training went on: whatever it was, it ended nothing
    state.is_finished = False
    state.last_iteration, state.total = rows.iterations[-1], rows.totals[-1]
    state.stamp = rows.stamps[-1] or state.stamp
    count = len(rows)
    state.recent.extend((rows, index) for index in range(max(0, count - _REMEMBERED_ROWS), count))


def _restart_reason(row: Rows, state: _State) -> str:
    """Why a row can't belong to the attempt that is running, or ``""``."""
    iteration, total, stamp = row.iterations[0], row.totals[0], row.stamps[0]
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
    is_other_rank = row.labels[0] != others.labels[index]
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
