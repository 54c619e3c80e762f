"""Rows that stand for different numbers of iterations, brought to the same stretches.

A console prints the mean over the iterations since the row before. Where one side logs more often, its rows that make
up exactly one row of the other are averaged, each by the iterations that advanced in it, as a log interval of that
length would have done it. Nothing is split, and a stretch with a hole isn't filled.
"""

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

__all__ = ["Matched", "matched"]

_OF_A_SIDE = ("value", "interval", "advanced", "quantum", "is_repaired")


class Matched(NamedTuple):
    """Two tables laid over each other.

    Attributes:
        frame: The rows whose windows are equal, or were made so: `key`, and both sides' columns, the candidate's with
            the suffix ``_candidate``; ascending.
        averaged: Keys of the rows of baseline and candidate that were averaged into a longer window.
        unmatched: Common keys at which no equal windows could be made, ascending.
    """

    frame: "pl.DataFrame"
    averaged: tuple[frozenset[int], frozenset[int]]
    unmatched: "pl.DataFrame"


def matched(left: "pl.DataFrame", right: "pl.DataFrame", key: str, *, is_mean: bool) -> Matched:
    """Rows of both sides at the same key and over the same window.

    Args:
        left: The baseline's rows: `key`, ``value``, ``interval`` (units of the key that a row stands for), ``advanced``
            (iterations averaged in it), ``quantum`` and ``is_repaired``, ascending.
        right: The candidate's.
        key: Column to match by.
        is_mean: Whether values are means over their windows; else they are the last iteration's own, in any window.
    """
    import polars as pl

    joined = left.join(right, on=key, suffix="_candidate").sort(key)
    same = pl.col("interval").eq_missing(pl.col("interval_candidate"))
    unequal = joined.filter(~same) if is_mean else joined.clear()
    if unequal.is_empty():
        return Matched(joined, (frozenset(), frozenset()), unequal)
    sides = (_Rows(left, key), _Rows(right, key))
    averaged: tuple[set[int], set[int]] = (set(), set())
    rows, failed = [], []
    for row in unequal.iter_rows(named=True):
        lengths = row["interval"], row["interval_candidate"]
        fine = 0 if lengths[0] is not None and lengths[1] is not None and lengths[0] < lengths[1] else 1
        mean = None if None in lengths else sides[fine].mean(row[key], lengths[1 - fine])
        if mean is None:
            failed.append(row[key])
            continue
        suffix = "_candidate" if fine else ""
        values = (mean.value, lengths[1 - fine], mean.advanced, mean.quantum, mean.is_repaired)
        rows.append({**row, **{f"{name}{suffix}": value for name, value in zip(_OF_A_SIDE, values, strict=True)}})
        averaged[fine].update(mean.keys)
    made = pl.DataFrame(rows, schema=joined.schema)
    return Matched(
        frame=pl.concat([joined.filter(same), made]).sort(key),
        averaged=(frozenset(averaged[0]), frozenset(averaged[1])),
        unmatched=unequal.filter(pl.col(key).is_in(failed)),
    )


class _Mean(NamedTuple):
    value: float | None
    advanced: int
    quantum: float
    is_repaired: bool
    keys: "Sequence[int]"


class _Rows:
    """One side's rows as plain lists."""

    def __init__(self, frame: "pl.DataFrame", key: str) -> None:
        self._keys: list[int] = frame[key].to_list()
        self._rows: list[tuple[float | None, int | None, int | None, float, bool]] = list(
            frame.select(_OF_A_SIDE).iter_rows()
        )

    def mean(self, end: int, length: int) -> _Mean | None:
        """The rows that make up the window of that length up to `end`; None if they don't exactly."""
        first, last = bisect_right(self._keys, end - length), bisect_right(self._keys, end)
        rows = self._rows[first:last]
        lengths = [interval for _, interval, _, _, _ in rows]
        if None in lengths or sum(lengths) != length:  # type: ignore[arg-type]
            return None
        weights = [length_ if advanced is None else advanced for _, length_, advanced, _, _ in rows]
        advanced = sum(weight or 0 for weight in weights)
        total, quantum = 0.0, 0.0
        for (value, _, _, half_unit, _), weight in zip(rows, weights, strict=True):
            if weight:
                total += (math.nan if value is None else value) * weight
                quantum += half_unit * weight
        is_missing = not advanced or any(row[0] is None and weight for row, weight in zip(rows, weights, strict=True))
        return _Mean(
            value=None if is_missing else total / advanced,
            advanced=advanced,
            quantum=quantum / advanced if advanced else 0.0,
            is_repaired=any(row[4] for row in rows),
            keys=self._keys[first:last],
        )
