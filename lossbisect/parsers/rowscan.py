"""Training rows of a block: most by the quick way of their shape, the rest one by one."""

import re
from dataclasses import dataclass
from functools import lru_cache

from lossbisect.parsers.events import Rows
from lossbisect.parsers.layouts import Layout, Matcher, learn, matcher
from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.records import Record, find_records, joins, wants_more
from lossbisect.parsers.source import Block, Line

__all__ = ["Run", "find_rows"]

_MOST_JOINED = 8
_MOST_LAYOUTS = 4
_LONGEST_PREFIX = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Rows of one shape that follow each other in a block, and where each starts."""

    offsets: list[int]
    rows: Rows


def find_rows(block: Block) -> tuple[list[Run], int]:
    """Runs of rows in file order, and where the first row starts that isn't whole yet (else the block's end)."""
    runs: list[Run] = []
    layouts: tuple[Layout, ...] = ()
    position, size = 0, len(block.data)
    while position < size:
        stop = _quick_rows(block, position, matcher(layouts), runs)
        if stop is None:
            break
        line = block.line_at(stop)
        text, end = line.text, line.end
        if wants_more(text):
            text, end, is_unfinished = _join(block, line)
            if is_unfinished and not block.is_last:
                return runs, line.start
        records = find_records(text, is_ended=line.is_ended)
        runs.extend(_single(record, line, end) for record in records)
        if len(records) == 1 and end == line.end:
            layout = learn(text, records[0])
            if layout and layout not in layouts:
                layouts = (layout, *layouts)[:_MOST_LAYOUTS]
        position = max(end, stop + 1)
    return runs, size


def _quick_rows(block: Block, position: int, current: Matcher, runs: list[Run]) -> int | None:
    """Add the rows of known shapes; return where a record stands that has none, or None at the block's end."""
    starts: list[int] = []
    groups: list[tuple[bytes, ...]] = []
    shape: int | None = -1
    for match in current.pattern.finditer(block.data, position):
        if match.lastindex != shape:
            failed = _add_run(block, current, shape, starts, groups, runs)
            if failed is not None:
                return failed
            shape, starts, groups = match.lastindex, [], []
            if shape not in current.layouts:
                return match.start()
        starts.append(match.start())
        groups.append(match.groups())
    return _add_run(block, current, shape, starts, groups, runs)


_PREFIXES = re.compile(rb"^([^|\n]*?) ?(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] )?$", re.MULTILINE)


def _add_run(
    block: Block,
    current: Matcher,
    shape: int | None,
    starts: list[int],
    groups: list[tuple[bytes, ...]],
    runs: list[Run],
) -> int | None:
    """Add rows of one shape; return where the first one starts that needs a closer look, if there is one."""
    if not starts or shape is None:
        return None
    layout, part = current.layouts[shape]
    prefixes = [_prefix(block, start) for start in starts]
    heads = _PREFIXES.findall(b"\n".join(prefixes))
    labels = [_label(before) for before, _ in heads]
    count = len(starts)
    if len(heads) != count or None in labels:
        labels = [_label(found[0][0]) if (found := _PREFIXES.findall(prefix)) else None for prefix in prefixes]
        count = labels.index(None)
        if not count:
            return starts[0]
        _add_run(block, current, shape, starts[:count], groups[:count], runs)
        return starts[count]
    iterations, totals, *columns = list(zip(*groups, strict=True))[part]
    try:
        values = [list(map(float, column)) for column in columns]
    except ValueError:
        if count == 1:
            return starts[0]
        half = count // 2
        failed = _add_run(block, current, shape, starts[:half], groups[:half], runs)
        return failed if failed is not None else _add_run(block, current, shape, starts[half:], groups[half:], runs)
    for column, scale in zip(values, layout.scales, strict=True):
        if scale != 1.0:
            column[:] = [value * scale for value in column]
    rows = Rows(
        columns=layout.columns,
        values=values,
        iterations=list(map(int, iterations)),
        totals=list(map(int, totals)),
        stamps=[stamp.decode() for _, stamp in heads],
        labels=[label or "" for label in labels],
        line_nos=[block.number_at(start) for start in starts],
        is_complete=True,
    )
    runs.append(Run(offsets=starts, rows=rows))
    return None


def _prefix(block: Block, start: int) -> bytes:
    """What stands in the line before a record; a bar, which no prefix has, if that is too long to be one."""
    since = max(0, start - _LONGEST_PREFIX)
    line_start = block.data.rfind(b"\n", since, start) + 1
    return block.data[line_start:start] if line_start or not since else b"|"


@lru_cache(maxsize=1024)
def _label(before: bytes) -> str | None:
    """The label that a prefix gives; None if more than a prefix stands there."""
    rest, label = peel(before.decode("utf-8", "replace") + " ")
    return None if rest.strip() else label


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
