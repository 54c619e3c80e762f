"""What a block of a log holds, before anyone asks what it means together."""

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.parsers.runlog import ConfigValue, Failure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Config", "Evaluation", "Event", "Finish", "Rows", "Stage", "Start", "StepTime", "Version", "single_row"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """Training rows of one process that follow each other with the same columns; nothing else stands between them.

    Attributes:
        columns: Names of the columns.
        values: One array a column, each with one value a row.
        iterations: Number of the iteration, a row.
        totals: Number of iterations that the run was to have, a row.
        stamps: The row's own clock in ASCII, or empty.
        label: The process that printed the rows, or ``""``.
        line_nos: 1-based line where the row starts.
        is_complete: False if the rows were cut.
    """

    columns: tuple[str, ...]
    values: "list[NDArray[np.float64]]"
    iterations: "NDArray[np.int64]"
    totals: "NDArray[np.int64]"
    stamps: "NDArray[np.bytes_]"
    label: str
    line_nos: "NDArray[np.int64]"
    is_complete: bool

    def __len__(self) -> int:
        """How many rows."""
        return len(self.iterations)

    def part(self, start: int, stop: int) -> "Rows":
        """Rows from one index up to another."""
        return Rows(
            columns=self.columns,
            values=[column[start:stop] for column in self.values],
            iterations=self.iterations[start:stop],
            totals=self.totals[start:stop],
            stamps=self.stamps[start:stop],
            label=self.label,
            line_nos=self.line_nos[start:stop],
            is_complete=self.is_complete,
        )


def single_row(
    *, fields: dict[str, float], iteration: int, total: int, stamp: str, label: str, line_no: int, is_complete: bool
) -> Rows:
    """One row as `Rows`."""
    import numpy as np

    return Rows(
        columns=tuple(fields),
        values=[np.array([value]) for value in fields.values()],
        iterations=np.array([iteration]),
        totals=np.array([total]),
        stamps=np.array([stamp.encode()]),
        label=label,
        line_nos=np.array([line_no]),
        is_complete=is_complete,
    )


class Evaluation(NamedTuple):
    """One evaluation of one split.

    Attributes:
        line_no: 1-based line.
        iteration: The iteration after which it ran, or None where the line doesn't say.
        split: ``validation`` or ``test``; with the set's name or index, ``validation-name``.
        values: Loss column to value in nats; None where the number was cut.
    """

    line_no: int
    iteration: int | None
    split: str
    values: dict[str, float | None]


class Stage(IntEnum):
    """How far a starting process has come; a log never goes back to an earlier stage within one start."""

    CONFIG = 1
    INITIALIZED = 2
    LOAD = 3
    LOOP = 4


class Start(NamedTuple):
    """A line that only a starting process prints.

    Attributes:
        line_no: 1-based line.
        stage: How far the process has come.
        iteration: The iteration that training goes on from (0 for a fresh start), or None where it doesn't say.
    """

    line_no: int
    stage: Stage
    iteration: int | None = None


class Config(NamedTuple):
    """A dump of the configuration, flat; ``kind`` tells its shape."""

    line_no: int
    kind: str
    values: dict[str, ConfigValue]


class Version(NamedTuple):
    """Megatron-Core's version, as the run prints it."""

    line_no: int
    text: str


class Finish(NamedTuple):
    """A clean end: all iterations done, or an exit that was asked for."""

    line_no: int


class StepTime(NamedTuple):
    """Bridge's ``Step Time``, which another rank prints before the row that it belongs to."""

    line_no: int
    time_ms: float
    throughput_tflops: float


type Event = Rows | Evaluation | Start | Config | Version | Finish | Failure
