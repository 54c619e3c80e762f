"""The losses that torchtitan keeps for its tests: a line ``step loss`` an iteration."""

import re
from pathlib import Path

from lossbisect.parsers.pointwise import Points
from lossbisect.parsers.runlog import RunLog

__all__ = ["is_torchtitan", "read_torchtitan"]

_LINE = re.compile(r"\s*(\d{1,12})\s+([-+]?\d+\.\d+(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*", re.ASCII)
_HEADING = re.compile(r"\s*step\s+loss\s*")
_FEWEST = 2


def is_torchtitan(text: str, *, is_whole: bool) -> bool:
    """Whether every line of a text says an iteration and a loss; of a part the last line is left out."""
    lines = [line for line in text.splitlines() if line.strip()]
    lines = lines[1:] if lines and _HEADING.fullmatch(lines[0]) else lines
    lines = lines if is_whole else lines[:-1]
    return len(lines) >= _FEWEST and all(map(_LINE.fullmatch, lines))


def read_torchtitan(text: str, path: Path) -> RunLog:
    """The loss curve; a line of another kind is left out with a note."""
    points = Points(path, "torchtitan", "its lines are 'step loss'")
    decimals = 0
    for line_no, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match:
            points.add("lm loss", int(match[1]), float(match[2]), line_no)
            decimals = max(decimals, len(match[2].partition(".")[2].lower().partition("e")[0]))
        elif line.strip() and not _HEADING.fullmatch(line):
            points.note(line_no, "left-out", "The line is no 'step loss'; it was left out.")
    return points.log(loss_quantum_rel=0.5 * 10.0**-decimals)
