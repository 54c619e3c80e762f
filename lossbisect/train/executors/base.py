"""What every executor can do, and the slots that several runs share."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from lossbisect.errors import RunCancelledError
from lossbisect.train.types import RunRecord, RunSpec

__all__ = ["Executor", "OnLine", "ShouldStop", "Slots"]

type OnLine = Callable[[str], None] | None
type ShouldStop = Callable[[], bool] | None


class Executor(Protocol):
    """Runs specs. All methods may be called from any thread."""

    @property
    def slots(self) -> int:
        """How many runs go on at once; a further `run` waits."""
        ...

    def run(self, spec: RunSpec, out: Path, *, on_line: OnLine = None, should_stop: ShouldStop = None) -> RunRecord:
        """Run the spec once and wait for it.

        Args:
            spec: What to run.
            out: The run's own directory; made here, and must not exist or be empty. The record's own ``out`` counts:
                a run that is tried again gets another one beside it.
            on_line: Called with each console line as it's printed, in another thread.
            should_stop: Asked now and then. Once it says yes the run may be ended; its outcome is then ``cut short``.
                What it raises ends the run too, and passes through.

        Raises:
            TrainerError: The set-up is incomplete: nothing can be run.
            RecipeError: There is no such recipe.
            RunCancelledError: `cancel` or `close` was called.
        """
        ...

    def expect(self, spec: RunSpec) -> None:
        """Begin with what runs like this one need, whatever their code is: one will be asked for in a moment."""
        ...

    def cancel(self) -> None:
        """End what goes on, whole process groups and jobs; nothing can be run afterwards."""
        ...

    def close(self) -> None:
        """End what goes on, wait for it, and give back what the executor holds."""
        ...


class Slots:
    """Numbers from 0 on, each lent to one run at a time."""

    def __init__(self, number: int) -> None:
        """All are free.

        Args:
            number: How many there are, at least 1.
        """
        self.number = number
        self.stop = threading.Event()
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(number):
            self._free.put(slot)

    @contextmanager
    def take(self) -> Iterator[int]:
        """A slot, when one is free.

        Raises:
            RunCancelledError: `stop` is set.
        """
        while True:
            if self.stop.is_set():
                raise RunCancelledError("The run was ended before it began.")
            try:
                slot = self._free.get(timeout=0.25)
                break
            except queue.Empty:
                continue
        try:
            yield slot
        finally:
            self._free.put(slot)

    def drain(self) -> None:
        """Set `stop`, and wait until every slot is free."""
        self.stop.set()
        for _ in range(self.number):
            self._free.get()
        for slot in range(self.number):
            self._free.put(slot)
