"""Training rows of a block: most by the quick way of their shape, the rest one by one."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lossbisect.parsers.events import Rows
from lossbisect.parsers.layouts import Layout, Taken, learn, take
from lossbisect.parsers.records import Record, find_records, joins, wants_more
from lossbisect.parsers.source import Block, Line

__all__ = ["Run", "find_rows"]

_START = re.compile(rb"iteration[ \t]+\d{1,12}[ \t]*/[ \t]*\d{1,12}[ \t]*\|")
_MOST_JOINED = 8
_MOST_LAYOUTS = 8
_FEWEST_QUICK = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Rows of one shape that follow each other in a block, and where each starts."""

    offsets: list[int]
    rows: Rows


class _Candidate(NamedTuple):
    """A line with a record's start.

    Attributes:
        ordinal: Its number among the candidates of the block.
        start: Offset of the line in the block.
        end: Offset of its end.
    """

    ordinal: int
    start: int
    end: int


def find_rows(block: Block, *, fewest_quick: int = _FEWEST_QUICK) -> tuple[list[Run], int]:
    """Runs of rows in file order, and where the first row starts that isn't whole yet (else the block's end).

    Args:
        block: The block.
        fewest_quick: With fewer rows left to read, each is read by itself.
    """
    waiting = _candidates(block)
    runs: list[Run] = []
    end = len(block.data)
    tried: set[Layout] = set()
    position = 0
    while position < len(waiting):
        candidate = waiting[position]
        position += 1
        found, layout, unfinished = _slow(block, candidate)
        if unfinished is not None:
            end = unfinished
            break
        runs.extend(found)
        if layout and layout not in tried and len(waiting) - position >= fewest_quick and len(tried) < _MOST_LAYOUTS:
            tried.add(layout)
            rest = waiting[position:]
            taken = take(layout, [block.data[start:stop] for _, start, stop in rest])
            runs.extend(_quick_runs(block, layout, rest, taken))
            waiting, position = [line for line, fits in zip(rest, taken.fits, strict=True) if not fits], 0
    runs.sort(key=lambda run: run.offsets[0])
    return runs, end


def _candidates(block: Block) -> list[_Candidate]:
    data, size = block.data, len(block.data)
    found: list[_Candidate] = []
    position = end = 0
    while (at := data.find(b"iteration", position)) >= 0:
        if not _START.match(data, at):
            position = at + 9
            continue
        start = data.rfind(b"\n", end, at) + 1 or end
        end = data.find(b"\n", at)
        position = end = end if end >= 0 else size
        found.append(_Candidate(len(found), start, end))
    return found


def _quick_runs(block: Block, layout: Layout, lines: list[_Candidate], taken: Taken) -> list[Run]:
    """Rows that were taken, parted where another candidate stands between them."""
    fitting = [line for line, fits in zip(lines, taken.fits, strict=True) if fits]
    if not fitting:
        return []
    rows = Rows(
        columns=layout.columns,
        values=taken.values,
        iterations=taken.iterations,
        totals=taken.totals,
        stamps=taken.stamps,
        labels=taken.labels,
        line_nos=[block.number_at(line.start) for line in fitting],
        is_complete=True,
    )
    offsets = [line.start for line in fitting]
    breaks = [at for at, (a, b) in enumerate(pairwise(fitting), start=1) if b.ordinal != a.ordinal + 1]
    if not breaks:
        return [Run(offsets=offsets, rows=rows)]
    return [
        Run(offsets=offsets[start:stop], rows=rows.part(start, stop))
        for start, stop in pairwise([0, *breaks, len(fitting)])
    ]


def _slow(block: Block, candidate: _Candidate) -> tuple[list[Run], Layout | None, int | None]:
    """A line's rows, their shape if it can come again, and the line's start if the block ends before it is whole."""
    line = block.line_at(candidate.start)
    text, end = line.text, line.end
    if wants_more(text):
        text, end, is_unfinished = _join(block, line)
        if is_unfinished and not block.is_last:
            return [], None, line.start
    records = find_records(text, is_ended=line.is_ended)
    runs = [_single(record, line, end) for record in records]
    layout = learn(text, records[0]) if len(records) == 1 and end == line.end else None
    return runs, layout, None


def _join(block: Block, line: Line) -> tuple[str, int, bool]:
    """A wrapped row put together, the offset where it ends, and whether the block ended before that was clear."""
    text, last = line.text, line
    for _ in range(_MOST_JOINED):
        following = block.next_line(last)
        if following is None:
            return text, last.end, True
        if not joins(text, following.text):
            break
        text, last = text + following.text, following
        if not wants_more(text):
            break
    return text, last.end, False


def _single(record: Record, line: Line, end: int) -> Run:
    rows = Rows(
        columns=tuple(record.fields),
        values=[[value] for value in record.fields.values()],
        iterations=[record.iteration],
        totals=[record.total],
        stamps=[record.stamp],
        labels=[record.label],
        line_nos=[line.no],
        is_complete=record.is_complete,
    )
    return Run(offsets=[min(line.start + record.offset, end)], rows=rows)
