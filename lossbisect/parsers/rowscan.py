"""Training rows of a block: most by the quick way of their shape, the rest one by one."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.parsers.events import Rows, single_row
from lossbisect.parsers.layouts import Layout, Taken, learn, take
from lossbisect.parsers.records import Record, find_records, joins, wants_more
from lossbisect.parsers.source import Block, Line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Offsets = NDArray[np.int64]

__all__ = ["ROW_NEEDLES", "Layouts", "Run", "find_rows"]

ROW_NEEDLES = ("iteration ", "iteration\t")
"""Text of which every record has one where it starts."""

_START = re.compile(rb"iteration[ \t]+\d{1,12}[ \t]*/[ \t]*\d{1,12}[ \t]*\|")
_AFTER_NEEDLE = b" \t0123456789"
_MOST_JOINED = 8
_MOST_KNOWN = 128
_MOST_LEARNED = 64  # in one block: where no row is like another, learning only costs


class Run(NamedTuple):
    """Rows of one shape that follow each other in a block, and where each starts, rising."""

    offsets: "Offsets"
    rows: Rows


class Layouts:
    """The shapes of rows that were learned so far, the most frequent ones first."""

    def __init__(self) -> None:
        self._known: tuple[Layout, ...] = ()

    def __iter__(self) -> Iterator[Layout]:
        """The shapes, as they are now."""
        return iter(self._known)

    def remember(self, counts: Mapping[Layout, int]) -> None:
        """Take the shapes of a block's rows and how often each came; what didn't come for long is forgotten."""
        came = sorted(counts, key=lambda layout: -counts[layout])
        self._known = (*came, *(layout for layout in self._known if layout not in counts))[:_MOST_KNOWN]


def find_rows(block: Block, hits: "Offsets", layouts: Layouts, *, is_quick: bool = True) -> tuple[list[Run], int]:
    """Runs of rows in file order, and where the first row starts that isn't whole yet (else the block's end).

    Args:
        block: The block.
        hits: Where a needle of rows stands, rising.
        layouts: The shapes that are known; what is learned here is added.
        is_quick: Whether rows are taken by their shapes; else each is read by itself.
    """
    import numpy as np

    runs: list[Run] = []
    end = len(block.data)
    rest = _Candidates(block, _candidates(block, hits))
    for known in layouts if is_quick else ():
        rest.take(known)
    learned: list[Layout] = []
    position = 0
    while position < len(rest.starts):
        start = int(rest.starts[position])
        if not _START.match(block.data, start):
            position += 1
            continue
        line = block.line_at(start)
        records, line_end, is_whole = _records(block, line)
        if not is_whole:
            end = line.start
            break
        runs.extend(_single(record, line, line_end) for record in records)
        position = int(np.searchsorted(rest.starts, line.end))
        is_learnable = is_quick and len(learned) < _MOST_LEARNED and len(records) == 1 and line_end == line.end
        if is_learnable and (layout := learn(block.data[line.start : line.end], records[0])):
            learned.append(layout)
            rest.drop(position)
            rest.take(layout)
            position = 0
    layouts.remember(dict.fromkeys(learned, 0) | {part.layout: len(part.offsets) for part in rest.taken})
    runs.extend(_quick_runs(block, rest.taken))
    runs.sort(key=lambda run: int(run.offsets[0]))
    return runs, end


class _Quick(NamedTuple):
    """Rows of one shape: where they are in the block, and among all candidates."""

    layout: Layout
    taken: Taken
    offsets: "Offsets"
    places: "Offsets"


class _Candidates:
    """Where a row may start in a block, less those that were taken."""

    def __init__(self, block: Block, starts: "Offsets") -> None:
        import numpy as np

        self._block = block
        self.starts = starts
        self._places = np.arange(len(starts))  # among all candidates
        self.taken: list[_Quick] = []

    def drop(self, count: int) -> None:
        """Leave out the first ones."""
        self.starts, self._places = self.starts[count:], self._places[count:]

    def take(self, layout: Layout) -> None:
        """Take the rows of a shape."""
        if taken := take(layout, self._block.data, self.starts):
            fits = taken.fits
            self.taken.append(_Quick(layout, taken, self.starts[fits], self._places[fits]))
            self.starts, self._places = self.starts[~fits], self._places[~fits]


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


def _records(block: Block, line: Line) -> tuple[list[Record], int, bool]:
    """A line's records, where they end, and whether they are whole in the block."""
    text, end = line.text, line.end
    if wants_more(text):
        text, end, is_unfinished = _join(block, line)
        if is_unfinished and not block.is_last:
            return [], end, False
    return find_records(text, is_ended=line.is_ended), end, True


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
