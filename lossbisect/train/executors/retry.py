"""A run that failed by its infrastructure says nothing about its commit: it is tried again."""

import threading
from pathlib import Path

from lossbisect.cause import Cause
from lossbisect.errors import RunCancelledError
from lossbisect.train.executors.base import Executor, OnLine, ShouldStop
from lossbisect.train.types import RunRecord, RunSpec

__all__ = ["RetryingExecutor"]

WAIT_S = 5.0
"""Before the first repeat; each further one waits twice as long."""


class RetryingExecutor:
    """An executor in whose place another one runs, up to a number of further times."""

    def __init__(self, executor: Executor, *, retries: int, wait_s: float = WAIT_S) -> None:
        """Wrap an executor, which is closed with this one."""
        self._executor = executor
        self._retries = retries
        self._wait_s = wait_s
        self._stop = threading.Event()

    @property
    def slots(self) -> int:
        """Those of the executor."""
        return self._executor.slots

    def run(self, spec: RunSpec, out: Path, *, on_line: OnLine = None, should_stop: ShouldStop = None) -> RunRecord:
        """As `Executor.run`; attempt ``n`` after the first one goes into ``<out>.attempt-n``."""
        for attempt in range(1, self._retries + 2):
            where = out if attempt == 1 else _beside(out, attempt)
            record = self._executor.run(spec, where, on_line=on_line, should_stop=should_stop)
            if record.cause is not Cause.INFRASTRUCTURE or attempt > self._retries:
                return record
            if on_line is not None:
                on_line(f"[lossbisect] not the commit's failure, so it runs again: {record.reason}")
            if self._stop.wait(self._wait_s * 2 ** (attempt - 1)):
                raise RunCancelledError("The run was ended before it could be tried again.")
        raise AssertionError("unreachable")

    def expect(self, spec: RunSpec) -> None:
        """As `Executor.expect`."""
        self._executor.expect(spec)

    def cancel(self) -> None:
        """As `Executor.cancel`."""
        self._stop.set()
        self._executor.cancel()

    def close(self) -> None:
        """As `Executor.close`."""
        self._stop.set()
        self._executor.close()


def _beside(out: Path, attempt: int) -> Path:
    """A directory that isn't there yet: an earlier process may have tried again too."""
    path = out.with_name(f"{out.name}.attempt-{attempt}")
    while path.exists():
        attempt += 1
        path = out.with_name(f"{out.name}.attempt-{attempt}")
    return path
