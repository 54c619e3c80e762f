"""What a bisection shows on stderr while it goes on: plain lines, and on a terminal below them what happens now."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import click

from lossbisect.bisect import Event, EventKind
from lossbisect.report.plain import printable
from lossbisect.train.progress import RunProgress

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Board", "progress"]

_CONFIRMING_RUNS = 2


class _Show(Protocol):
    def __call__(self, event: Event) -> None: ...


@dataclass
class _Slot:
    """One run that goes on: its head, and what its trainer said last."""

    head: str
    began_s: float
    rows: RunProgress
    now: str = ""


@dataclass
class Board:
    """What happens now, in a few lines. Pure apart from the clock, which is passed in.

    Attributes:
        clock: Seconds, from any start.
    """

    clock: Callable[[], float] = time.monotonic
    _bracket: str = ""
    _rounds_left: int | None = None
    _slots: dict[str, _Slot] = field(default_factory=dict)
    _took_s: list[float] = field(default_factory=list)

    def see(self, event: Event) -> None:
        """Take in what is told."""
        text = printable(event.text).strip()
        slot = self._slots.get(event.commit)
        if event.kind is EventKind.RUN_STARTED:
            self._slots[event.commit] = _Slot(text, self.clock(), RunProgress(self.clock))
        elif event.kind is EventKind.LINE and slot is not None:
            slot.now = slot.rows.read(text) or (text if not slot.now.startswith("iteration") else slot.now)
        elif event.kind is EventKind.RUN_FINISHED and slot is not None:
            self._took_s.append(self.clock() - slot.began_s)
            del self._slots[event.commit]
        elif event.kind is EventKind.NARROWED:
            self._bracket, self._rounds_left = text, event.rounds_left

    def lines(self) -> list[str]:
        """The bracket with the time that is left, then one line for each run that goes on; none before the first run.

        The time is the rounds that are left, and one for the runs that confirm, at the mean time of a run so far. It
        is left out until a run has ended and the search has begun.
        """
        now = self.clock()
        lines = [f"{self._bracket}{self._left()}"] if self._bracket else []
        for slot in self._slots.values():
            head = slot.head.split(": ", 1)
            name = f"{head[0]}: {head[1].split(' ', 1)[0]}" if len(head) == 2 else slot.head
            lines.append(" | ".join(part for part in (f"{now - slot.began_s:4.0f} s", name, slot.now) if part))
        return lines

    def _left(self) -> str:
        if self._rounds_left is None or not self._took_s:
            return ""
        from lossbisect.train.cost import duration_text

        mean_s = sum(self._took_s) / len(self._took_s)
        confirming = _CONFIRMING_RUNS if len(self._slots) <= 1 else 1
        return f", {duration_text(mean_s * (self._rounds_left + confirming))} at this pace"


@contextmanager
def progress() -> Iterator[_Show]:
    """Yield what shows a bisection's events: plain lines, and on a terminal what happens now below them."""
    if not sys.stderr.isatty():
        yield _show_plainly
        return
    from rich.console import Console
    from rich.live import Live

    console, board = Console(stderr=True), Board()
    with Live(console=console, transient=True, refresh_per_second=4, get_renderable=lambda: _drawn(board)):

        def show(event: Event) -> None:
            board.see(event)
            if event.kind not in (EventKind.LINE, EventKind.RESUMABLE):
                console.print(printable(event.text), markup=False, highlight=False)

        yield show


def _drawn(board: Board) -> "Group":
    from rich.console import Group
    from rich.text import Text

    return Group(*(Text(line, no_wrap=True, overflow="ellipsis", style="dim") for line in board.lines()))


def _show_plainly(event: Event) -> None:
    if event.kind not in (EventKind.LINE, EventKind.RESUMABLE):
        click.echo(printable(event.text), err=True)
