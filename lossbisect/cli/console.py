"""What commands that run trainers share: signs of life on stderr, and a polite end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from lossbisect.train.progress import RunProgress

__all__ = ["interruptible", "iteration_lines"]

OURS = "[lossbisect] "
"""Begins a line that isn't the trainer's."""


class _IterationLines:
    """Shows how far a run is, one line for each iteration: a run without a sign of life looks hung."""

    def __init__(self, name: str = "") -> None:
        self._progress = RunProgress()
        self._name = f"{name}: " if name else ""

    def __call__(self, line: str) -> None:
        text = self._progress.read(line)
        if text is None and line.startswith(OURS):
            text = line.removeprefix(OURS)
        if text is not None:
            click.echo(f"{self._name}{text}", err=True)


def iteration_lines(name: str = "") -> _IterationLines:
    """What a run's console lines are given to; ``name`` tells several runs apart."""
    return _IterationLines(name)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a polite kill or a closed terminal stop the work as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
