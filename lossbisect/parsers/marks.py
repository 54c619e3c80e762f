"""What a run says between its rows: checkpoints, memory, timers, and Bridge's step times."""

import re
from collections.abc import Callable, Iterator

from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.runlog import Checkpoint, Memory, Timing
from lossbisect.parsers.source import Block, Line
from lossbisect.schema import column_name

__all__ = ["MARK_FINDERS", "TIMER_NEEDLES", "find_checkpoints", "find_memory", "find_timings"]

_LONGEST_REPORT = 200
# Patterns are texts: few logs have any of these lines, and `re` keeps what it has compiled.
_SAVE = (
    r"(?:^|[\s\]])saving checkpoint at iteration\s+(?P<iteration>\d{1,12}) to (?P<path>\S.*?)(?: in \w+ format)?\s*$"
)
_SAVED = (
    r"successfully saved (?:local )?checkpoint (?:at|from) iteration\s+(?P<iteration>\d{1,12})(?: to (?P<path>\S+))?"
)
_LOADED = (
    r"successfully loaded checkpoint (?:from (?P<path>\S+) )?(?:\[[^\]]*\] )?at iteration\s+(?P<iteration>\d{1,12})"
)
_MEMORY = (
    r"(?:\[Rank (?P<rank>\d{1,6})\] )?"
    r"\(?(?P<when>after (?P<done>\d{1,12}) iterations"
    r"|(?:before|after) save_checkpoint for iteration (?P<at>\d{1,12}))\)?"
    r" memory \((?P<unit>[MG]B)\) \|(?P<fields>[^\[]*)"
)
_MEMORY_FIELD = r"\s*([a-z][a-z -]{2,40}): (\d{1,15}(?:\.\d{1,20})?)\s*"


def find_checkpoints(line: Line) -> Iterator[Checkpoint]:
    """The checkpoints of which a line tells."""
    for kind, pattern in (("saving", _SAVE), ("saved", _SAVED), ("loaded", _LOADED)):
        if match := re.search(pattern, line.text):
            yield Checkpoint(line_no=line.no, kind=kind, iteration=int(match["iteration"]), path=match["path"] or "")


def find_memory(line: Line) -> Iterator[Memory]:
    """The memory reports in a line; ranks race, so there may be several."""
    for match in re.finditer(_MEMORY, line.text):
        fields = (re.fullmatch(_MEMORY_FIELD, piece) for piece in match["fields"].split("|"))
        unit = "" if match["unit"] == "GB" else "_mb"  # Bridge's names say their unit
        values = {column_name(field[1]) + unit: float(field[2]) for field in fields if field}
        if values:
            iteration = int(match["done"] or match["at"])
            rank = int(match["rank"]) if match["rank"] else None
            yield Memory(line_no=line.no, rank=rank, iteration=iteration, when=match["when"].split()[0], values=values)


MARK_FINDERS: tuple[tuple[str, Callable[[Line], Iterator[Checkpoint | Memory]]], ...] = (
    ("saving checkpoint at ", find_checkpoints),
    ("successfully saved ", find_checkpoints),
    ("successfully loaded ", find_checkpoints),
    ("memory (MB) |", find_memory),
    ("memory (GB) |", find_memory),
)
"""Text of which a line has one, and what reads it."""

TIMER_NEEDLES = ("time (ms) |", "ranks (ms):")
"""Text of which every report of timers has one in its first line."""

_TIME = r"(\d{1,12}\.\d{1,6})"
_ONE_LINE = rf"\s*([a-z][\w-]{{1,60}}): {_TIME}\s*"
_RANGE = rf"\s*([a-z][\w/-]{{1,60}}) \.*: \({_TIME}, {_TIME}\)\s*"
_MAXIMUM = rf"\s*([a-z][\w/-]{{1,60}}) \.*: {_TIME}\s*"
_NAME = r"\s*([a-z][\w/-]{1,60}):\s*"
_RANK = rf"\s*rank\s+\d{{1,6}}: {_TIME}\s*"


def find_timings(block: Block, offset: int) -> Iterator[Timing]:
    """The timers of the report whose first line holds an offset."""
    line = block.line_at(offset)
    if TIMER_NEEDLES[0] in line.text:
        for piece in line.text.partition(TIMER_NEEDLES[0])[2].split("|"):
            if match := re.fullmatch(_ONE_LINE, piece):
                yield Timing(line_no=line.no, name=match[1], min_ms=float(match[2]), max_ms=float(match[2]))
        return
    glued = line.text.partition(TIMER_NEEDLES[1])[2]
    following: Line | None = line
    name, times = "", list[float]()
    for count in range(_LONGEST_REPORT):
        text = glued if count == 0 else peel(following.text)[0] if following else ""
        assert following is not None
        if match := re.fullmatch(_RANGE, text):
            yield Timing(line_no=following.no, name=match[1], min_ms=float(match[2]), max_ms=float(match[3]))
        elif match := re.fullmatch(_MAXIMUM, text):
            yield Timing(line_no=following.no, name=match[1], min_ms=None, max_ms=float(match[2]))
        elif name and (match := re.fullmatch(_RANK, text)):
            times.append(float(match[1]))
        elif count or text.strip():
            if name and times:
                yield Timing(line_no=following.no, name=name, min_ms=min(times), max_ms=max(times))
            match = re.fullmatch(_NAME, text)
            if not match:
                return
            name, times = match[1], []
        following = block.next_line(following)
        if following is None:
            return
