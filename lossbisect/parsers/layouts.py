"""The quick way through many rows of one shape.

A run prints the same keys in the same order, row after row. Once a row was read field by field (`records`), its shape
becomes a pattern over bytes, and further rows of that shape are taken whole. A row that doesn't fit to the last byte
goes the slow way; so the quick way decides nothing, it only repeats.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from lossbisect.parsers.records import Record, key_of

__all__ = ["Layout", "Matcher", "learn", "matcher"]

_VALUE = rb"([-+.0-9Eenaif]+)"
_FIELD = re.compile(r" ([^|:]+): +([-+.0-9Eenaif]+) ")


@dataclass(frozen=True, slots=True)
class Layout:
    """The shape of a row.

    Attributes:
        keys: Its keys as printed, in order.
        columns: Their columns.
        scales: Factors to the columns' units.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    scales: tuple[float, ...]

    @property
    def has_scale(self) -> bool:
        """Whether a value must be multiplied to get the column's unit."""
        return any(scale != 1.0 for scale in self.scales)

    @property
    def pattern(self) -> bytes:
        """What follows ``iteration`` in a row of this shape: iteration, total, and one group a key."""
        fields = b"".join(rb" %b: +%b \|" % (re.escape(key.encode()), _VALUE) for key in self.keys)
        return rb" +(\d+)/ *(\d+) \|" + fields + rb" ?(?=\n)"


@dataclass(frozen=True, slots=True)
class Matcher:
    """A pattern that takes a row of one of a few layouts whole, and otherwise stops at any record's start.

    Attributes:
        pattern: Over a block's bytes.
        layouts: By the number of the last group that a match filled. A number that isn't here is a record of another
            shape.
    """

    pattern: re.Pattern[bytes]
    layouts: dict[int, tuple[Layout, slice]]


def learn(text: str, record: Record) -> Layout | None:
    """The shape of a line's only record, or None if it isn't one that comes again as it is."""
    if not record.is_complete:
        return None
    body = text[record.offset :].rstrip(" ")
    head, bar, rest = body.partition("|")
    if not bar or not rest.endswith("|"):
        return None
    pieces = rest[:-1].split("|")
    matches = [_FIELD.fullmatch(piece) for piece in pieces]
    keys = [match[1] for match in matches if match]
    known = [key for raw in keys if (key := key_of(" " + raw))]
    if len(keys) != len(pieces) or len(known) != len(keys) or head.startswith("iteration\t"):
        return None
    columns = tuple(key.column for key in known)
    if columns != tuple(record.fields) or not any(key.is_nan_counter for key in known):
        return None
    return Layout(keys=tuple(keys), columns=columns, scales=tuple(key.scale for key in known))


@lru_cache(maxsize=64)
def matcher(layouts: tuple[Layout, ...]) -> Matcher:
    """A matcher for some layouts, tried in this order."""
    branches, by_group, group = [], {}, 0
    for layout in layouts:
        branches.append(layout.pattern)
        first, group = group, group + 2 + len(layout.keys)
        by_group[group] = (layout, slice(first, group))
    branches.append(rb"[ \t]+\d{1,12}[ \t]*/[ \t]*\d{1,12}[ \t]*\|")
    return Matcher(re.compile(rb"iteration(?:%b)" % b"|".join(branches)), by_group)
