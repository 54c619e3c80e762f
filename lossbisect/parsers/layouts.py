"""The quick way through many rows of one shape.

A run prints the same keys in the same order, row after row. Once a row was read field by field (`records`), further
rows of its shape are read as columns. A row that doesn't fit in every place is left to the slow way; so the quick way
decides nothing, it only repeats.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.records import Record, key_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Layout", "Taken", "learn", "take"]

_FIELD = re.compile(r" ([^|:]+): +([-+.0-9Eenaif]+) ")
_PROGRESS = r"^ *(?<iteration>\d{1,12})/ *(?<total>\d{1,12}) $"
_STAMPED = r"^(?<writer>.*?) ?\[(?<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] $"


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """Rows of one shape among some lines.

    Attributes:
        fits: For each line whether it is a row of the shape (Boolean); the lists hold those that are.
        values: One list a column.
    """

    fits: "pl.Series"
    iterations: list[int]
    totals: list[int]
    stamps: list[str]
    labels: list[str]
    values: list[list[float]]


def learn(text: str, record: Record) -> Layout | None:
    """The shape of a line's only record, or None if it isn't one that comes again as it is."""
    rest = text[record.offset :].partition("|")[2].rstrip(" ")
    if not record.is_complete or not rest.endswith("|"):
        return None
    matches = [_FIELD.fullmatch(piece) for piece in rest[:-1].split("|")]
    names = [match[1] for match in matches if match]
    keys = [key for name in names if (key := key_of(f" {name}"))]
    columns = tuple(key.column for key in keys)
    if len(keys) != len(matches) or columns != tuple(record.fields) or not any(key.is_nan_counter for key in keys):
        return None
    return Layout(keys=tuple(names), columns=columns, scales=tuple(key.scale for key in keys))


def take(layout: Layout, lines: "pl.Series") -> Taken:
    """The lines that are whole rows of a shape, to the last bar, behind nothing but a prefix."""
    import polars as pl

    count = len(layout.keys)
    frame = lines.str.splitn("|", count + 2).struct.unnest()
    names = frame.columns
    head = pl.col(names[0]).str.splitn("iteration ", 2).struct.rename_fields(["before", "progress"])
    frame = frame.with_columns(head.struct.unnest())
    frame = frame.with_columns(
        pl.col("progress").str.extract_groups(_PROGRESS).struct.unnest(),
        pl.when(pl.col("before").str.ends_with("] "))
        .then(pl.col("before").str.extract_groups(_STAMPED))
        .otherwise(
            pl.struct(pl.col("before").str.strip_suffix(" ").alias("writer"), pl.lit(None, pl.String).alias("stamp"))
        )
        .struct.unnest(),
    )
    writers = frame["writer"].unique().to_list()
    labels = {writer: _label(writer) for writer in writers if writer is not None}
    fits = pl.col(names[-1]).is_in(["", " "]) & pl.col("iteration").is_not_null()
    values = []
    for name, key, column, scale in zip(names[1:-1], layout.keys, layout.columns, layout.scales, strict=True):
        fits &= pl.col(name).str.starts_with(f" {key}: ") & pl.col(name).str.ends_with(" ")
        number = pl.col(name).str.strip_prefix(f" {key}: ").str.strip_chars(" ").cast(pl.Float64, strict=False)
        values.append((number * scale if scale != 1.0 else number).alias(f"value {column}"))
    label = pl.col("writer").replace_strict(labels, default=None, return_dtype=pl.String)
    frame = frame.select(
        "stamp",
        pl.col("iteration", "total").cast(pl.Int64, strict=False),
        label.alias("label"),
        fits.fill_null(False).alias("fits"),
        *values,
    )
    columns = frame.columns[5:]
    whole = pl.all_horizontal(pl.col("fits"), pl.col("label", *columns).is_not_null())
    frame = frame.with_columns(whole.alias("fits"))
    rows = frame.filter("fits")
    return Taken(
        fits=frame["fits"],
        iterations=rows["iteration"].to_list(),
        totals=rows["total"].to_list(),
        stamps=rows["stamp"].fill_null("").to_list(),
        labels=rows["label"].to_list(),
        values=[rows[name].to_list() for name in columns],
    )


@lru_cache(maxsize=1024)
def _label(before: str) -> str | None:
    """The label that a prefix gives; None if more than a prefix stands there."""
    rest, label = peel(f"{before} ")
    return None if rest.strip() else label
