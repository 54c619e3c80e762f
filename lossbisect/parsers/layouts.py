"""The quick way through many rows of one shape.

A run prints the same keys in the same order, row after row, mostly in the same width. Once a row was read field by
field (`records`), further rows of its shape, wherever they stand, are read as columns. A row that doesn't fit in every
byte but its digits is left to the slow way; so the quick way decides nothing, it only repeats.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.parsers.digits import MOST_DIGITS, Shape, scaled, texts_at
from lossbisect.parsers.records import Record, key_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lossbisect.parsers.digits import Bools, Floats, Octets, Offsets, Words

__all__ = ["Layout", "Taken", "learn", "take"]

_LEAD = rb"samples/sec: (?P<lead>\d+\.\d+) \|[^|]*?"  # gpt-neox
_ROW = re.compile(
    rb"(?P<prefix>[^|]*?(?:" + _LEAD + rb")?)"
    rb"(?P<start>iteration +(?P<iteration>\d{1,12})/ *(?P<total>\d{1,12}) \|)(?P<fields>.*\| ?)"
)
_FIELD = re.compile(
    rb"(?P<key> [^|:]+: ) *(?P<value>-?[0-9][0-9.]*(?:E[-+][0-9]+)?|[-+]?(?:nan|inf))(?P<unit> ?[A-Za-z/%]*) \|",
    re.IGNORECASE,
)
_DECIMAL = re.compile(
    rb"(?P<minus>-?)(?P<whole>\d+)(?:\.(?P<decimals>\d{1,12})(?:E(?P<sign>[-+])(?P<exponent>\d\d))?)?"
)
_CLOCK = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|(?<=\.(?:log|txt|out|err)[:-])\d+(?=[:-])")
_STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] $")


class _Field(NamedTuple):
    """One field of a shape.

    Attributes:
        column: Its column.
        scale: Factor to the column's unit.
        digits: Places of its digits, the highest first; none if its value isn't made of digits.
        n_decimals: How many of them stand behind the decimal point.
        exponent: Places of the digits of its exponent, if it has one.
        exponent_sign: The exponent's sign.
        sign: Its own sign.
        value: What a value that isn't made of digits stands for.
    """

    column: str
    scale: float
    digits: tuple[int, ...] = ()
    n_decimals: int = 0
    exponent: tuple[int, ...] = ()
    exponent_sign: int = 1
    sign: float = 1.0
    value: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Layout:
    """The shape of a row, from the line end before it to the one after it.

    Attributes:
        shape: Its bytes; digits of clocks and of values may differ.
        row: Place of the word ``iteration``.
        stamp: First and last place of the row's own clock; equal if it has none.
        label: The process that prints such rows.
        fields: Its fields, in order.
    """

    shape: Shape
    row: int
    stamp: slice
    label: str
    fields: tuple[_Field, ...]


class Taken(NamedTuple):
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
    stamp = _STAMP.search(row["prefix"])
    fields = _fields(text, row, record)
    if not fields or (record.stamp and not stamp):
        return None
    numbers = [tuple(range(*row.span(name))) for name in ("iteration", "total")]
    numbers += [places for field in fields for places in (field.digits, field.exponent) if places]
    clocks = {place for clock in _CLOCK.finditer(text, 0, row.end("prefix")) for place in range(*clock.span())}
    layout = Layout(
        shape=Shape(text, frozenset(place for place in clocks if text[place : place + 1].isdigit()), numbers),
        row=row.start("start"),
        stamp=slice(1 + stamp.start(1), 1 + stamp.end(1)) if stamp else slice(0),
        label=record.label,
        fields=tuple(fields),
    )
    return layout if _says(layout, text, record) else None


def take(layout: Layout, data: bytes, starts: "Offsets") -> Taken | None:
    """The candidates that are whole rows of a shape, each alone on its line; None if none is.

    Args:
        layout: The shape.
        data: Where the candidates are.
        starts: Offsets of their word ``iteration``.
    """
    import numpy as np

    width = layout.shape.width
    begins = starts - layout.row
    index = np.flatnonzero((begins >= 0) & (begins + width <= len(data)))
    # Most rows of another shape have another length.
    index = index[np.frombuffer(data, np.uint8)[begins[index] + len(layout.shape.text) - 1] == ord("\n")]
    if not len(index):
        return None
    texts = texts_at(data, begins[index], width)
    is_row, (iterations, totals, *numbers) = layout.shape.read(texts)
    if not is_row.all():
        index, texts = index[is_row], texts[is_row]
    values, is_read = _values(layout.fields, numbers, len(index))
    if not is_read.all():
        index, texts, values = index[is_read], texts[is_read], [value[is_read] for value in values]
        iterations, totals = iterations[is_read], totals[is_read]
    if not len(index):
        return None
    is_taken = np.zeros(len(starts), np.bool_)
    is_taken[index] = True
    return Taken(
        fits=is_taken,
        iterations=iterations.astype(np.int64),
        totals=totals.astype(np.int64),
        stamps=_text(texts[:, layout.stamp]),
        values=values,
    )


def _fields(text: bytes, row: re.Match[bytes], record: Record) -> list[_Field]:
    """The fields of a row, which are those of its record; none if one of them can't be read as a column."""
    columns = iter(record.fields.items())
    fields = [_field(row, "lead", 1.0, *next(columns))] if row["lead"] else []
    has_counter = False
    place = row.start("fields")
    while match := _FIELD.match(text, place):
        key = key_of(match["key"][:-2].decode("utf-8", "replace"))
        column, value = next(columns, ("", 0.0))
        if key is None or not column.startswith(key.column):
            return []
        has_counter = has_counter or key.is_nan_counter
        fields.append(_field(match, "value", key.scale, column, value))
        place = match.end()
    is_whole = place >= row.end("fields") - 1 and len(fields) == len(record.fields) and has_counter
    return [field for field in fields if field] if is_whole and None not in fields else []


def _field(match: re.Match[bytes], group: str, scale: float, column: str, value: float) -> _Field | None:
    text, start = match[group], match.start(group)
    if text.lstrip(b"+-").lower() in {b"nan", b"inf"}:
        return _Field(column=column, scale=1.0, value=value)
    number = _DECIMAL.fullmatch(text)
    if number is None:
        return None
    digits = (*range(*number.span("whole")), *range(*number.span("decimals")))
    exponent = range(*number.span("exponent")) if number["exponent"] else range(0)
    if len(digits) > MOST_DIGITS:
        return None
    return _Field(
        column=column,
        scale=scale,
        digits=tuple(start + place for place in digits),
        n_decimals=len(number["decimals"] or b""),
        exponent=tuple(start + place for place in exponent),
        exponent_sign=-1 if number["sign"] == b"-" else 1,
        sign=-1.0 if number["minus"] else 1.0,
    )


def _says(layout: Layout, text: bytes, record: Record) -> bool:
    """Whether a row reads by its shape as it was read field by field."""
    import numpy as np

    taken = take(layout, text.ljust(layout.shape.width, b"\0"), np.array([layout.row]))
    if taken is None:
        return False
    found = (int(taken.iterations[0]), int(taken.totals[0]), taken.stamps[0].decode())
    fields = {field.column: float(value[0]) for field, value in zip(layout.fields, taken.values, strict=True)}
    return found == (record.iteration, record.total, record.stamp) and repr(fields) == repr(record.fields)


def _values(fields: "tuple[_Field, ...]", numbers: "list[Words]", count: int) -> "tuple[list[Floats], Bools]":
    """The values of each field, in its column's unit, and which rows were read."""
    import numpy as np

    values: list[Floats] = []
    is_read = np.ones(count, np.bool_)
    rest = iter(numbers)
    for field in fields:
        if not field.digits:
            values.append(np.full(count, field.value))
            continue
        value = next(rest).astype(np.float64)
        if field.exponent:
            exponents = field.exponent_sign * next(rest).astype(np.int64)
            value, is_value = scaled(value, exponents - field.n_decimals)
            is_read &= is_value
        elif field.n_decimals:
            value = value / 10.0**field.n_decimals
        factor = field.sign * field.scale
        values.append(value if factor == 1.0 else value * factor)
    return values, is_read


def _text(octets: "Octets") -> "NDArray[np.bytes_]":
    """Rows of bytes as texts; rows of none as empty ones."""
    import numpy as np

    count, width = octets.shape
    return np.ascontiguousarray(octets).view(f"S{width}")[:, 0] if width else np.zeros(count, "S1")
