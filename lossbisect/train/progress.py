"""How far a run is, from the lines that its trainer prints. Pure apart from the clock, which is passed in."""

import re
import time
from collections.abc import Callable

__all__ = ["RunProgress"]

_ROW = re.compile(r"\biteration\s+(\d+)\s*/\s*(\d+)\s*\|")
_LOSS = re.compile(r"\blm loss:\s*([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf))", re.IGNORECASE)


class RunProgress:
    """Reads rows of a console, and says where the run is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing read yet.

        Args:
            clock: Seconds, from any start.
        """
        self._clock = clock
        self._first: tuple[int, float] | None = None

    def read(self, line: str) -> str | None:
        """``iteration 12/100, lm loss 9.87, about 1 min 20 s left`` for a row; None for any other line."""
        row = _ROW.search(line)
        if row is None:
            return None
        from lossbisect.train.cost import duration_text

        at, last, now = int(row[1]), int(row[2]), self._clock()
        if self._first is None or at <= self._first[0]:
            self._first = at, now  # the first iteration's own time is mostly start-up
        loss = _LOSS.search(line)
        parts = [f"iteration {at}/{last}", *([f"lm loss {float(loss[1]):.6g}"] if loss else [])]
        done = at - self._first[0]
        if done > 0 and at < last:
            parts.append(f"about {duration_text((now - self._first[1]) / done * (last - at))} left")
        return ", ".join(parts)
