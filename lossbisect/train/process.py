"""A trainer's process from start to end: its console kept, its time limited, and nothing of it left over."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from lossbisect.errors import TrainerError
from lossbisect.train.trainers import Launch
from lossbisect.train.warm import WarmParent

__all__ = ["run_process"]

_GRACE_S = 10.0

type OnLine = Callable[[str], None] | None


def run_process(how: Launch, timeout_s: float, console: Path, on_line: OnLine, parent: WarmParent | None) -> int | None:
    """The trainer's exit code, negative for a signal; None if it was killed for taking too long.

    Args:
        how: What to start.
        timeout_s: Wall time that it may take, seconds.
        console: File for its standard output and error.
        on_line: Called with each line of them, in another thread.
        parent: Forks the run; None: it starts by itself.

    Raises:
        TrainerError: It can't be started.
    """
    if parent is not None:
        code, has_started = _run_warm(parent, how, timeout_s, console, on_line)
        if has_started:
            return code
    return _run_cold(how, timeout_s, console, on_line)


def _run_cold(how: Launch, timeout_s: float, console: Path, on_line: OnLine) -> int | None:
    try:
        process = subprocess.Popen(
            how.argv, cwd=how.cwd, env={**os.environ, **how.set_up, **how.env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise TrainerError(
            f"{how.argv[0]}: can't be started: {error.strerror}. Name the interpreter with --python."
        ) from error
    assert process.stdout is not None
    reader = _keep(process.stdout, console, on_line)
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(process.pid, lambda wait_s: process.wait(wait_s))
        process.wait()
        reader.join(_GRACE_S)


def _run_warm(
    parent: WarmParent, how: Launch, timeout_s: float, console: Path, on_line: OnLine
) -> tuple[int | None, bool]:
    """The exit code as in `run_process`, and whether the parent could start the run at all."""
    pipe = console.with_suffix(".fifo")
    os.mkfifo(pipe)
    # Held open for reading and writing, so that neither side waits for the other to open it.
    held = os.open(pipe, os.O_RDWR)
    reader = _keep(os.fdopen(os.open(pipe, os.O_RDONLY), "rb"), console, on_line)
    group = None
    try:
        number, group = parent.start(list(how.words), env=how.env, cwd=how.cwd, console=pipe)
        if group is None:
            return None, False
        try:
            return parent.wait(number, timeout_s), True
        except TimeoutError:
            return None, True
    finally:
        if group is not None:
            _kill_group(group, lambda wait_s: parent.wait(number, wait_s))
        os.close(held)  # the reader sees the end once the run's side is closed too
        reader.join(_GRACE_S)
        pipe.unlink()


def _keep(output: IO[bytes], console: Path, on_line: OnLine) -> threading.Thread:
    """Copy a process's output line by line until it ends, in a thread of its own."""

    def copy() -> None:
        with output, console.open("wb", buffering=0) as file:
            for line in output:
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
