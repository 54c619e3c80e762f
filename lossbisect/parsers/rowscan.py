"""Training rows of a block: most by the quick way of their shape, the rest one by one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lossbisect.parsers.events import Rows, single_row
from lossbisect.parsers.layouts import Layout, Taken, learn, take
from lossbisect.parsers.records import Record, find_records, joins, wants_more
from lossbisect.parsers.source import Block, Line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Offsets = NDArray[np.int64]

__all__ = ["ROW_NEEDLES", "Run", "find_rows"]

ROW_NEEDLES = ("iteration ", "iteration\t")
"""Text of which every record has one where it starts."""

_START = re.compile(rb"iteration[ \t]+\d{1,12}[ \t]*/[ \t]*\d{1,12}[ \t]*\|")
_AFTER_NEEDLE = b" \t0123456789"
_MOST_JOINED = 8
_MOST_LAYOUTS = 64
_FEWEST_QUICK = 32


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Run:
    """Rows of one shape that follow each other in a block, and where each starts, rising."""

    offsets: "Offsets"
    rows: Rows


def find_rows(block: Block, hits: "Offsets", *, fewest_quick: int = _FEWEST_QUICK) -> tuple[list[Run], int]:
    """Runs of rows in file order, and where the first row starts that isn't whole yet (else the block's end).

    Args:
        block: The block.
        hits: Where a needle of rows stands, rising.
        fewest_quick: With fewer rows left to read, each is read by itself.
    """
    import numpy as np

    runs: list[Run] = []
    quick: list[_Quick] = []
    end = len(block.data)
    starts = _candidates(block, hits)
    places = np.arange(len(starts))  # among all candidates
    position = 0
    while position < len(starts):
        start = int(starts[position])
        if not _START.match(block.data, start):
            position += 1
            continue
        line = block.line_at(start)
        found, layout, is_whole = _slow(block, line)
        if not is_whole:
            end = line.start
            break
        runs.extend(found)
        position = int(np.searchsorted(starts, line.end))
        if layout and len(starts) - position >= fewest_quick and len(quick) < _MOST_LAYOUTS:
            starts, places, position = starts[position:], places[position:], 0
            taken = take(layout, block, starts)
            quick.append(_Quick(layout, taken, starts[taken.fits], places[taken.fits]))
            starts, places = starts[~taken.fits], places[~taken.fits]
    runs.extend(_quick_runs(block, quick))
    runs.sort(key=lambda run: int(run.offsets[0]))
    return runs, end


@dataclass(frozen=True, slots=True, eq=False)
class _Quick:
    """Rows of one shape: where they are in the block, and among all candidates."""

    layout: Layout
    taken: Taken
    offsets: "Offsets"
    places: "Offsets"


def _candidates(block: Block, hits: "Offsets") -> "Offsets":
    """Those hits that a number can follow."""
    import numpy as np

    data = np.frombuffer(block.data, np.uint8)
    hits = hits[hits + len(ROW_NEEDLES[0]) < len(data)]
    is_followed = np.zeros(256, np.bool_)
    is_followed[list(_AFTER_NEEDLE)] = True
    return hits[is_followed[data[hits + len(ROW_NEEDLES[0])]]]


def _quick_runs(block: Block, quick: list[_Quick]) -> Iterator[Run]:
    """Rows that were taken, those of one process and columns together, parted where other candidates are between."""
    import numpy as np

    alike: dict[tuple[str, tuple[str, ...]], list[_Quick]] = {}
    for part in quick:
        columns = tuple(field.column for field in part.layout.fields)
        alike.setdefault((part.layout.label, columns), []).append(part)
    for (label, columns), parts in alike.items():
        tables = [
            (part.offsets, part.places, part.taken.iterations, part.taken.totals, part.taken.stamps, *part.taken.values)
            for part in parts
        ]
        order = np.argsort(np.concatenate([table[0] for table in tables]), kind="stable")
        offsets, places, iterations, totals, stamps, *values = (
            np.concatenate(pieces)[order] for pieces in zip(*tables, strict=True)
        )
        if not len(offsets):
            continue
        rows = Rows(
            columns=columns,
            values=values,
            iterations=iterations,
            totals=totals,
            stamps=stamps,
            label=label,
            line_nos=block.numbers_at(offsets),
            is_complete=True,
        )
        breaks = np.flatnonzero(np.diff(places) != 1) + 1
        for start, stop in pairwise([0, *breaks.tolist(), len(offsets)]):
            yield Run(offsets=offsets[start:stop], rows=rows.part(start, stop))


def _slow(block: Block, line: Line) -> tuple[list[Run], Layout | None, bool]:
    """A line's rows, their shape if it can come again, and whether the line was whole in the block."""
    text, end = line.text, line.end
    if wants_more(text):
        text, end, is_unfinished = _join(block, line)
        if is_unfinished and not block.is_last:
            return [], None, False
    records = find_records(text, is_ended=line.is_ended)
    runs = [_single(record, line, end) for record in records]
    layout = learn(block.data[line.start : line.end], records[0]) if len(records) == 1 and end == line.end else None
    return runs, layout, True


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
    import numpy as np

    rows = single_row(
        fields=record.fields,
        iteration=record.iteration,
        total=record.total,
        stamp=record.stamp,
        label=record.label,
        line_no=line.no,
        is_complete=record.is_complete,
    )
    return Run(offsets=np.array([min(line.start + record.offset, end)]), rows=rows)
