"""What a log is after reading: tables, a flat configuration, and notes on everything that isn't as it looks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Attempt", "Checkpoint", "ConfigValue", "Failure", "LossKind", "Memory", "Note", "RunLog", "Timing"]

type ConfigValue = str | int | float | bool | list[ConfigValue] | None


class LossKind(StrEnum):
    """What a loss in a row stands for."""

    INTERVAL_MEAN = "interval mean"
    """Mean over the iterations that advanced since the previous row (console logs)."""
    PER_ITERATION = "per iteration"
    """The iteration's own value (TensorBoard, golden files, full-precision runs)."""


class Note(NamedTuple):
    """Something a reader of the table should know.

    Attributes:
        line_no: 1-based line, or None where it concerns the whole file.
        kind: Stable name, such as ``row-2-mean`` or ``cut-row``.
        text: One sentence for a person.
    """

    line_no: int | None
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One start of the training process within a log.

    Attributes:
        index: 0-based; the ``attempt`` column refers to it.
        line_no: 1-based line where it starts.
        reason: Why a new attempt begins here, such as ``start mark`` or ``iteration fell from 12 to 9``.
    """

    index: int
    line_no: int
    reason: str


class Failure(NamedTuple):
    """What ended a run, if it did not end by itself.

    Attributes:
        kind: Stable name, such as ``cuda-oom``, ``nccl``, ``import-error``, ``traceback``.
        line_no: 1-based line.
        text: The line that says so, without prefixes.
    """

    kind: str
    line_no: int
    text: str


class Checkpoint(NamedTuple):
    """A checkpoint of which the log tells.

    Attributes:
        line_no: 1-based line.
        kind: ``saving`` (begun), ``saved`` (done: only now can a run go on from it) or ``loaded``.
        iteration: Its iteration.
        path: Its folder, ``""`` where the line doesn't say.
    """

    line_no: int
    kind: str
    iteration: int
    path: str


class Memory(NamedTuple):
    """One process's report of its device memory.

    Attributes:
        line_no: 1-based line.
        rank: The process, or None in logs of 2019.
        iteration: The iteration that it names.
        when: ``after`` the iteration (or after its save), or ``before`` its save.
        values: Name to value; the name ends in its unit (``allocated_mb``, ``mem_allocated_gigabytes``) or counts.
    """

    line_no: int
    rank: int | None
    iteration: int
    when: str
    values: Mapping[str, float]


class Timing(NamedTuple):
    """One timer of one report: a time in ms, over the ranks.

    Attributes:
        line_no: 1-based line.
        name: The timer.
        min_ms: The least of the ranks, or None where only the greatest is printed.
        max_ms: The greatest.
    """

    line_no: int
    name: str
    min_ms: float | None
    max_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLog:
    """A run as its log tells it.

    Attributes:
        path: The file that was read, or a name for another source.
        dialect: Who wrote it: ``megatron-lm``, ``megatron-bridge``, ``lossbisect``.
        iterations: One row per logged record (`lossbisect.schema.ITERATION_COLUMNS` and the log's other keys), in file
            order; where a resume printed an iteration again both rows are here, told apart by ``attempt``.
        validation: One row per evaluated loss (`lossbisect.schema.VALIDATION_COLUMNS`).
        config: The dumped configuration. Keys of Megatron-LM as they are (``adam_eps``), keys of Bridge dotted
            (``optimizer.adam_eps``). Empty if the log has no dump.
        attempts: Process starts, in file order; at least one if there is a row.
        loss_kind: What the losses in the rows stand for.
        loss_quantum_rel: Half a unit in the last printed digit of a loss, relative to the loss (5e-7 for the seven
            digits of a console log); 0 where values have full precision.
        notes: What was repaired, left out or cut, in file order.
        failure: What ended the run, or None.
        checkpoints: Saves and loads, in file order.
        memory: Reports of memory, in file order.
        timings: Timers, in file order; of each 8 MB of a log the first 64 reports only, as there may be millions.
        dialect_reason: What told the dialect, as the end of a sentence.
        planned_iterations: The iteration that the run was to reach, as its newest row says; None where no row does.
    """

    path: Path
    dialect: str
    iterations: "pl.DataFrame"
    validation: "pl.DataFrame"
    config: Mapping[str, ConfigValue]
    attempts: tuple[Attempt, ...]
    loss_kind: LossKind
    loss_quantum_rel: float
    notes: tuple[Note, ...] = field(default=())
    failure: Failure | None = None
    checkpoints: tuple[Checkpoint, ...] = field(default=())
    memory: tuple[Memory, ...] = field(default=())
    timings: tuple[Timing, ...] = field(default=())
    dialect_reason: str = ""
    planned_iterations: int | None = None
