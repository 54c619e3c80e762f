"""What a bisection asks of the world, and what it tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import RunRecord

__all__ = ["Event", "EventKind", "Runner"]


class Runner(Protocol):
    """What runs a commit. All methods may be called from any thread."""

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """Run a commit in the fresh folder ``out``; a failed training run is a record, not an exception.

        Args:
            commit: Full SHA.
            out: The run's own folder, not there yet.
            on_line: Called with each line that the trainer prints, in another thread.
            repeat: How many runs of this commit this bisect asked for before, earlier processes of it included; None:
                the question is how the machine is now, so nothing kept from earlier will do.
            should_stop: Asked now and then while the run goes on. Once it says yes the run is ended, and its record
                says that it was cut; once it raises `RunCancelledError` the run is ended and there is no record.
            without: Full SHA of an earlier commit whose change is taken back first. Where that doesn't go cleanly the
                record is void.
        """
        ...

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a run that recorded some."""
        ...


class EventKind(StrEnum):
    """What a progress message is about."""

    RESUMABLE = "resumable"
    """The text is the bisect's id: from here on it can be stopped and gone on with."""
    NOTE = "note"
    RUN_STARTED = "run started"
    LINE = "line"
    """A line that a running trainer printed."""
    RUN_FINISHED = "run finished"
    NARROWED = "narrowed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One progress message.

    Attributes:
        kind: What it is about.
        text: One line for a person.
        commit: Short SHA, where it is about a run.
        rounds_left: Rounds of runs that the search may still need, as `text` says, without those that confirm.
    """

    kind: EventKind
    text: str
    commit: str = ""
    rounds_left: int | None = None
