"""Training rows of a block: most by the quick way of their shape, the rest one by one."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lossbisect.parsers.events import Rows
from lossbisect.parsers.layouts import Layout, Taken, learn, take
from lossbisect.parsers.records import Record, find_records, joins, wants_more
from lossbisect.parsers.source import Block, Line

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Run", "find_rows"]

_START = rb"iteration[ \t]+\d{1,12}[ \t]*/[ \t]*\d{1,12}[ \t]*\|"
_HAS_START = re.compile(_START)
_MOST_JOINED = 8
_MOST_LAYOUTS = 8
_FEWEST_QUICK = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Rows of one shape that follow each other in a block, and where each starts."""

    offsets: list[int]
    rows: Rows


def find_rows(block: Block, *, fewest_quick: int = _FEWEST_QUICK) -> tuple[list[Run], int]:
    """Runs of rows in file order, and where the first row starts that isn't whole yet (else the block's end).

    Args:
        block: The block.
        fewest_quick: With fewer rows left to read, each is read by itself.
    """
    runs: list[Run] = []
    end = len(block.data)
    if not _HAS_START.search(block.data):
        return runs, end
    lines = _candidates(block)
    starts, position = lines["start"].to_list(), 0
    tried: set[Layout] = set()
    while position < len(starts):
        found, layout, unfinished = _slow(block, starts[position])
        position += 1
        if unfinished is not None:
            end = unfinished
            break
        runs.extend(found)
        if layout and layout not in tried and len(starts) - position >= fewest_quick and len(tried) < _MOST_LAYOUTS:
            tried.add(layout)
            rest = lines.slice(position)
            taken = take(layout, rest["line"])
            runs.extend(_quick_runs(block, layout, rest.filter(taken.fits), taken))
            lines = rest.filter(~taken.fits)
            starts, position = lines["start"].to_list(), 0
    runs.sort(key=lambda run: run.offsets[0])
    return runs, end


def _candidates(block: Block) -> "pl.DataFrame":
    """Lines with a record's start: `ordinal` among these, `index` in the block, `start` as an offset, `line`."""
    import polars as pl

    line = pl.Series("line", [block.data.decode()]).str.split("\n").explode()
    ends = (line.str.len_bytes().cast(pl.Int64) + 1).cum_sum()
    start = ends.shift(1, fill_value=0).alias("start")
    frame = pl.DataFrame([line, start]).with_row_index("index")
    return frame.filter(pl.col("line").str.contains(_START.decode())).with_row_index("ordinal")


def _quick_runs(block: Block, layout: Layout, lines: "pl.DataFrame", taken: Taken) -> list[Run]:
    """Rows that were taken, parted where another candidate stands between them."""
    if lines.is_empty():
        return []
    offsets = lines["start"].to_list()
    rows = Rows(
        columns=layout.columns,
        values=taken.values,
        iterations=taken.iterations,
        totals=taken.totals,
        stamps=taken.stamps,
        labels=taken.labels,
        line_nos=list(map(block.number_of, lines["index"].to_list(), offsets)),
        is_complete=True,
    )
    breaks = (lines["ordinal"].cast(int).diff() != 1).arg_true().to_list()
    return [
        Run(offsets=offsets[start:stop], rows=rows.part(start, stop))
        for start, stop in pairwise([0, *breaks, len(offsets)])
    ]


def _slow(block: Block, start: int) -> tuple[list[Run], Layout | None, int | None]:
    """A line's rows, their shape if it can come again, and the line's start if the block ends before it is whole."""
    line = block.line_at(start)
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
