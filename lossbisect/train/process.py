"""A trainer's process from start to end: its console kept, its time limited, and nothing of it left over."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from lossbisect.errors import RunCancelledError, TrainerError
from lossbisect.redact import line_redactor
from lossbisect.train.last_will import MARK, LastWill, end_strays, kill_command
from lossbisect.train.trainers import Launch
from lossbisect.train.warm import WarmParent

__all__ = ["CutShort", "run_process"]

_GRACE_S = 10.0
_LOOK_UP_S = 0.01
"""How often a waiting thread looks whether it shall stop."""

type OnLine = Callable[[str], None] | None


class CutShort(Exception):  # noqa: N818
    """A run was ended on purpose, by its own ``should_stop``. Never leaves `lossbisect.train`."""


def run_process(
    how: Launch,
    timeout_s: float,
    console: Path,
    on_line: OnLine,
    parent: WarmParent | None,
    *,
    stop: threading.Event | None = None,
    will: LastWill | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> int | None:
    """The trainer's exit code, negative for a signal; None if it was killed for taking too long.

    Args:
        how: What to start.
        timeout_s: Wall time that it may take, seconds.
        console: File for its standard output and error.
        on_line: Called with each line of them, in another thread.
        parent: Forks the run; None: it starts by itself.
        stop: Once set, from any thread, the run is ended.
        will: Where the run is noted, so that it is ended even if this process is killed.
        should_stop: Asked a few times a second; once it says yes the run is ended.

    Raises:
        TrainerError: It can't be started.
        RunCancelledError: ``stop`` was set.
        CutShort: ``should_stop`` said yes.
    """
    halt = _Halt(stop, should_stop)
    how = replace(how, env={**how.env, MARK: str(console)})
    try:
        if parent is not None:
            code, has_started = _run_warm(parent, how, timeout_s, console, on_line, halt)
            if has_started:
                return code
        return _run_cold(how, timeout_s, console, on_line, halt, will)
    finally:
        end_strays(str(console))


def _run_cold(
    how: Launch, timeout_s: float, console: Path, on_line: OnLine, halt: "_Halt", will: LastWill | None
) -> int | None:
    try:
        process = subprocess.Popen(
            how.argv, cwd=how.cwd, env={**os.environ, **how.variables}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise TrainerError(
            f"{how.argv[0]}: can't be started: {error.strerror}. Name the interpreter with --python."
        ) from error
    assert process.stdout is not None
    reader = _keep(process.stdout, console, on_line, how)
    with will.holding(kill_command(process.pid)) if will else nullcontext():
        try:
            return _wait(process.wait, timeout_s, halt)
        finally:
            _kill_group(process.pid, process.wait)
            process.wait()
            end_strays(str(console))  # or the reader waits for them
            reader.join(_GRACE_S)


def _run_warm(
    parent: WarmParent, how: Launch, timeout_s: float, console: Path, on_line: OnLine, halt: "_Halt"
) -> tuple[int | None, bool]:
    """The exit code as in `run_process`, and whether the parent could start the run at all."""
    pipe = console.with_suffix(".fifo")
    os.mkfifo(pipe)
    # Held open for reading and writing, so that neither side waits for the other to open it.
    held = os.open(pipe, os.O_RDWR)
    reader = _keep(os.fdopen(os.open(pipe, os.O_RDONLY), "rb"), console, on_line, how)
    number = parent.start(list(how.words), env=how.env, cwd=how.cwd, console=pipe)
    group = None
    try:
        group = _wait(lambda wait_s: parent.group(number, wait_s), timeout_s, halt)
        if group is None:
            return None, False
        return _wait(lambda wait_s: _exit_code(parent, number, wait_s), timeout_s, halt), True
    finally:
        if group is None:
            parent.drop(number)
        else:
            _kill_group(group, lambda wait_s: parent.wait(number, wait_s))
        os.close(held)  # the reader sees the end once the run's side is closed too
        reader.join(_GRACE_S)
        pipe.unlink()


def _exit_code(parent: WarmParent, number: int, wait_s: float) -> int:
    """The run's exit code; a parent that was killed takes its runs with it."""
    code = parent.wait(number, wait_s)
    return -signal.SIGKILL if code is None else code


def _wait(wait: Callable[[float], int | None], timeout_s: float, halt: "_Halt") -> int | None:
    """The exit code, or None after ``timeout_s``.

    Raises:
        RunCancelledError, CutShort: It shall end.
    """
    until_s = time.monotonic() + timeout_s
    while (left_s := until_s - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired, TimeoutError):
            return wait(min(left_s, _LOOK_UP_S))
        halt.check()
    return None


@dataclass(frozen=True, slots=True)
class _Halt:
    """What may end a run from outside."""

    stop: threading.Event | None
    should_stop: Callable[[], bool] | None

    def check(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise RunCancelledError("The run was ended before its time.")
        if self.should_stop is not None and self.should_stop():
            raise CutShort


def _keep(output: IO[bytes], console: Path, on_line: OnLine, how: Launch) -> threading.Thread:
    """Copy a process's output line by line until it ends, without secrets, in a thread of its own."""
    without_secrets = line_redactor({**os.environ, **how.variables})

    def copy() -> None:
        with output, console.open("wb", buffering=0) as file:
            for line in map(without_secrets, output):
                file.write(line)
                if on_line is not None:
                    on_line(line.decode("utf-8", errors="replace").rstrip("\r\n"))

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _kill_group(group: int, wait: Callable[[float], object]) -> None:
    """End whatever is left of a process group: politely, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            return
        with suppress(subprocess.TimeoutExpired, TimeoutError):
            wait(_GRACE_S)
