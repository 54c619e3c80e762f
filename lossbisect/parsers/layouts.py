"""The quick way through many rows of one shape.

A run prints the same keys in the same order, row after row, mostly in the same width. Once a row was read field by
field (`records`), further rows of its shape are read as columns. A row that doesn't fit in every byte but its digits is
left to the slow way; so the quick way decides nothing, it only repeats.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lossbisect.parsers.digits import MOST_DIGITS, Shape, fits, read_decimal, read_digits, read_text, texts_at, width_of
from lossbisect.parsers.records import Record, key_of
from lossbisect.parsers.source import Block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lossbisect.parsers.digits import Bools, Floats, Offsets, Words

__all__ = ["Layout", "Taken", "learn", "take"]

_ROW = re.compile(
    rb"(?P<prefix>[^|]*?)(?P<start>iteration +(?P<iteration>\d{1,12})/ *(?P<total>\d{1,12}) \|)(?P<fields>.*\| ?)"
)
_FIELD = re.compile(rb"(?P<key> [^|:]+: ) *(?P<value>[-+.0-9Eenaif]+) \|", re.IGNORECASE)
_DECIMAL = re.compile(rb"(?P<whole>\d+)\.(?P<decimals>\d{1,12})(?:E(?P<sign>[-+])\d\d)?")
_CLOCK = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|(?<=\.(?:log|txt|out|err)[:-])\d+(?=[:-])")
_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] $")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    """One field of a shape.

    Attributes:
        column: Its column.
        scale: Factor to the column's unit.
        start: Place of its value, after blanks that pad it.
        end: Place after its value.
        point: Place of the decimal point; -1 for a whole number.
        exponent_sign: 1 or -1; 0 without an exponent, else that takes four places.
        value: What a value that isn't made of digits stands for; else None.
    """

    column: str
    scale: float
    start: int
    end: int
    point: int = -1
    exponent_sign: int = 0
    value: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The shape of a row, from the line end before it to the one after it.

    Attributes:
        shape: Its bytes; digits of clocks and of values may differ.
        row: Place of the word ``iteration``.
        iteration: First and last place of the iteration.
        total: The same of the number of iterations that the run was to have.
        stamp: The same of the row's own clock; equal if it has none.
        label: The process that prints such rows.
        fields: Its fields, in order.
    """

    shape: Shape
    row: int
    iteration: tuple[int, int]
    total: tuple[int, int]
    stamp: tuple[int, int]
    label: str
    fields: tuple[_Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Rows of one shape among some candidates.

    Attributes:
        fits: For each candidate whether it is a row of the shape; the other columns hold those that are.
        stamps: The rows' own clocks, all empty if the shape has none.
        values: One array a column.
    """

    fits: "Bools"
    iterations: "Offsets"
    totals: "Offsets"
    stamps: "NDArray[np.bytes_]"
    values: "list[Floats]"


def learn(line: bytes, record: Record) -> Layout | None:
    """The shape of a line's only record, or None if it isn't one that comes again as it is."""
    text = b"\n" + line + b"\n"
    row = _ROW.fullmatch(text, 1, len(text) - 1)
    if row is None or not record.is_complete:
        return None
    fields: list[_Field] = []
    has_counter = False
    place = row.start("fields")
    while match := _FIELD.match(text, place):
        key = key_of(match["key"][:-2].decode("utf-8", "replace"))
        if key is None or key.column not in record.fields:
            return None
        has_counter = has_counter or key.is_nan_counter
        fields.append(_field(match, key.column, key.scale, record.fields[key.column]))
        place = match.end()
    stamp = _STAMP.search(row["prefix"])
    is_read = place >= row.end("fields") - 1 and [field.column for field in fields] == list(record.fields)
    if not is_read or not has_counter or (record.stamp and not stamp):
        return None
    return Layout(
        shape=_shape(text, row, fields),
        row=row.start("start"),
        iteration=row.span("iteration"),
        total=row.span("total"),
        stamp=(1 + stamp.start(1), 1 + stamp.end(1)) if stamp else (0, 0),
        label=record.label,
        fields=tuple(fields),
    )


def take(layout: Layout, block: Block, starts: "Offsets") -> Taken:
    """The candidates that are whole rows of a shape, each alone on its line.

    Args:
        layout: The shape.
        block: Where the candidates are.
        starts: Offsets of their word ``iteration``.
    """
    import numpy as np

    width = width_of(layout.shape)
    begins = starts - layout.row
    index = np.flatnonzero((begins >= 0) & (begins + width <= len(block.data)))
    # Most rows of another shape have another length.
    ends = np.frombuffer(block.data, np.uint8)[begins[index] + len(layout.shape.text) - 1]
    index = index[ends == ord("\n")]
    texts = texts_at(block.data, begins[index], width)
    is_row = fits(texts, layout.shape)
    if not is_row.all():
        index, texts = index[is_row], texts[:, is_row]
    is_read = np.ones(texts.shape[1], np.bool_)
    values: list[Floats] = []
    for field in layout.fields:
        value, is_value = _read(texts, field)
        values.append(value if field.scale == 1.0 else value * field.scale)
        is_read &= is_value
    if not is_read.all():
        index, texts, values = index[is_read], texts[:, is_read], [value[is_read] for value in values]
    is_taken = np.zeros(len(starts), np.bool_)
    is_taken[index] = True
    return Taken(
        fits=is_taken,
        iterations=read_digits(texts, *layout.iteration).astype(np.int64),
        totals=read_digits(texts, *layout.total).astype(np.int64),
        stamps=read_text(texts, *layout.stamp),
        values=values,
    )


def _field(match: re.Match[bytes], column: str, scale: float, value: float) -> _Field:
    text, (start, end) = match["value"], match.span("value")
    if text.isdigit() and len(text) <= MOST_DIGITS:
        return _Field(column=column, scale=scale, start=start, end=end)
    decimal = _DECIMAL.fullmatch(text)
    if decimal and len(decimal["whole"] + decimal["decimals"]) <= MOST_DIGITS:
        return _Field(
            column=column,
            scale=scale,
            start=start,
            end=end,
            point=start + decimal.end("whole"),
            exponent_sign={None: 0, b"+": 1, b"-": -1}[decimal["sign"]],
        )
    return _Field(column=column, scale=1.0, start=start, end=end, value=value)


def _shape(text: bytes, row: re.Match[bytes], fields: list[_Field]) -> Shape:
    clocks = [place for clock in _CLOCK.finditer(text, 0, row.end("prefix")) for place in range(*clock.span())]
    numbers = [place for field in fields if field.value is None for place in range(field.start, field.end)]
    places = [*clocks, *range(*row.span("iteration")), *range(*row.span("total")), *numbers]
    return Shape(text, frozenset(place for place in places if text[place : place + 1].isdigit()))


def _read(texts: "Words", field: _Field) -> "tuple[Floats, Bools]":
    import numpy as np

    if field.value is not None:
        return np.full(texts.shape[1], field.value), np.ones(texts.shape[1], np.bool_)
    if field.point < 0:
        return read_digits(texts, field.start, field.end).astype(np.float64), np.ones(texts.shape[1], np.bool_)
    end = field.end - 4 if field.exponent_sign else field.end
    return read_decimal(texts, field.start, field.point, end, field.exponent_sign)
