"""A block of bytes to events.

`scan` is a pure function of one block. It looks for a few byte strings and touches only the lines that hold one, so
the cost of a log is that of its rows, not of what other ranks and libraries wrote between them.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

from lossbisect.parsers.config_dump import Dump, parse_arguments, parse_summary, parse_yaml
from lossbisect.parsers.events import Config, Event, Finish, Stage, Start, Version
from lossbisect.parsers.failures import find_failure
from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.rowscan import Run, find_rows
from lossbisect.parsers.source import Block, Line
from lossbisect.parsers.validation import EVALUATION_NEEDLES, find_evaluations

__all__ = ["Scan", "scan"]

_LONGEST_DUMP = 2 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """What a block holds.

    Attributes:
        events: In file order.
        keep_from: Where the next block must start again because something here isn't whole yet, or None.
    """

    events: list[Event]
    keep_from: int | None


def scan(block: Block) -> Scan:
    """Every event of a block."""
    runs, end = find_rows(block)
    marks: list[tuple[int, Event]] = []
    for finder in (_evaluations, _marks, _dumps):
        found, unfinished = finder(block)
        marks.extend(found)
        end = min(end, unfinished)
    runs = [run for whole in runs if (run := _until(whole, end))]
    marks = sorted((mark for mark in marks if mark[0] < end), key=_offset)
    marks = sorted([*marks, *_failures(block, runs, marks, end)], key=_offset)
    return Scan(events=_in_order(runs, marks), keep_from=end if end < len(block.data) else None)


def _offset(mark: tuple[int, Event]) -> int:
    return mark[0]


def _until(run: Run, end: int) -> Run | None:
    """The part of a run before an offset."""
    if run.offsets[-1] < end:
        return run
    count = bisect_left(run.offsets, end)
    return Run(offsets=run.offsets[:count], rows=run.rows.part(0, count)) if count else None


def _in_order(runs: list[Run], marks: list[tuple[int, Event]]) -> list[Event]:
    """Rows and marks as they follow each other in the file."""
    items: list[tuple[int, Event]] = list(marks)
    offsets = [offset for offset, _ in marks]
    for run in runs:
        first = bisect_left(offsets, run.offsets[0])
        cuts = [bisect_left(run.offsets, offset) for offset in offsets[first : bisect_left(offsets, run.offsets[-1])]]
        for start, stop in pairwise(sorted({0, *cuts, len(run.offsets)})):
            items.append((run.offsets[start], run.rows.part(start, stop)))
    items.sort(key=_offset)
    return [event for _, event in items]


type _Found = tuple[list[tuple[int, Event]], int]


def _evaluations(block: Block) -> _Found:
    found: list[tuple[int, Event]] = []
    for offset in _offsets(block, EVALUATION_NEEDLES):
        line = block.line_at(offset)
        found.extend((offset, evaluation) for evaluation in find_evaluations(line.text, line.no))
    return found, len(block.data)


_MARKS: tuple[tuple[bytes, re.Pattern[str], Callable[[Line, re.Match[str]], Event]], ...] = (
    (
        b"[before the start of training step] datetime",
        re.compile(r"\[before the start of training step\]"),
        lambda line, _: Start(line_no=line.no, stage=Stage.LOOP),
    ),
    (
        b"Starting training loop at iteration ",
        re.compile(r"Starting training loop at iteration (\d{1,12})", re.ASCII),
        lambda line, match: Start(line_no=line.no, stage=Stage.LOOP, iteration=int(match[1])),
    ),
    (
        b"[after megatron is initialized] datetime",
        re.compile(r"\[after megatron is initialized\]"),
        lambda line, _: Start(line_no=line.no, stage=Stage.INITIALIZED),
    ),
    (
        b"successfully loaded checkpoint ",
        re.compile(r"successfully loaded checkpoint .*?\bat iteration (\d{1,12})", re.ASCII),
        lambda line, match: Start(line_no=line.no, stage=Stage.LOAD, iteration=int(match[1])),
    ),
    (
        b"Megatron-Core version ",
        re.compile(r"> Megatron-Core version \.+ (\S+)"),
        lambda line, match: Version(line_no=line.no, text=match[1]),
    ),
    (b"[exiting program a", re.compile(r"\[exiting program (?:at|after) "), lambda line, _: Finish(line_no=line.no)),
    (
        b"[after training is done] datetime",
        re.compile(r"\[after training is done\]"),
        lambda line, _: Finish(line_no=line.no),
    ),
)


def _marks(block: Block) -> _Found:
    found: list[tuple[int, Event]] = []
    for needle, pattern, event in _MARKS:
        for offset in _offsets(block, (needle,)):
            line = block.line_at(offset)
            if match := pattern.search(line.text):
                found.append((offset, event(line, match)))
    return found, len(block.data)


_DUMPS: tuple[tuple[bytes, Callable[[Iterable[str]], Dump]], ...] = (
    (b"- arguments -", parse_arguments),
    (b"arguments:\n", parse_arguments),
    (b"_target_: ", parse_yaml),
    (b"Configuration Summary (", parse_summary),
)
_SECTION_NAME = re.compile(r"\s*[A-Za-z_]\w*:\s*")


def _dumps(block: Block) -> _Found:
    found: list[tuple[int, Event]] = []
    for needle, parse in _DUMPS:
        position = 0
        while (offset := block.data.find(needle, position)) >= 0:
            position = offset + len(needle)
            line = block.line_at(offset)
            text = peel(line.text)[0]
            if needle == b"arguments:\n" and text.strip() != "arguments:":
                continue
            if needle == b"_target_: " and text.startswith(" ") and line.start:
                # A log that starts in the middle of a dump: the line before names the section.
                above = block.line_at(line.start - 1)
                line = above if _SECTION_NAME.fullmatch(peel(above.text)[0]) else line
            dump = parse(item.text for item in block.lines_from(line.start))
            if not dump.is_closed and not block.is_last and len(block.data) - line.start < _LONGEST_DUMP:
                return found, line.start
            if dump.values:
                found.append((line.start, Config(line_no=line.no, kind=parse.__name__, values=dump.values)))
            for item in islice(block.lines_from(line.start), dump.n_lines):
                position = max(position, item.end)
    return found, len(block.data)


def _failures(block: Block, runs: list[Run], marks: list[tuple[int, Event]], end: int) -> Iterable[tuple[int, Event]]:
    """Failures where a run can have ended: before its restart, and after the block's last row.

    Between two rows of one run nothing can have ended it, so nothing is searched there.
    """
    edges = [offset for offset, event in marks if isinstance(event, Start | Config)]
    rows, last = [0], 0
    for run in runs:
        falls = [at for at, (a, b) in enumerate(pairwise([last, *run.rows.iterations])) if b <= a]
        if len(rows) == 1:
            falls.append(0)
        edges.extend(run.offsets[at] for at in falls)
        rows.extend(run.offsets)
        last = run.rows.iterations[-1]
    edges = sorted({0, *edges, end})
    for before, edge in pairwise(edges):
        since = max(before, rows[bisect_left(rows, edge) - 1])
        if failure := find_failure(block, since, edge):
            yield max(since, edge - 1), failure


def _offsets(block: Block, needles: tuple[bytes, ...]) -> list[int]:
    """Where lines with a needle are: one offset a line and needle, rising."""
    found: list[int] = []
    for needle in needles:
        offset = block.data.find(needle)
        while offset >= 0:
            found.append(offset)
            end = block.data.find(b"\n", offset)
            offset = block.data.find(needle, end) if end >= 0 else -1
    return sorted(found)
