"""Where any of some byte strings is, in one pass over a block."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["find_needles"]

_PIECE_BYTES = 1 << 17
_SMALL_BYTES = 1 << 14  # below, setting the search up in polars takes longer than the search


def find_needles(
    data: bytes, needles: tuple[str, ...], spans: list[tuple[int, int]] | None = None
) -> "NDArray[np.int64]":
    """Where a needle begins, rising.

    Args:
        data: UTF-8.
        needles: ASCII; where one begins inside another, only the first is found. A line end may stand at an end only.
        spans: The parts to search, from one offset up to another, rising; by default all.
    """
    import numpy as np
    import polars as pl

    spans = [(0, len(data))] if spans is None else spans
    if sum(end - start for start, end in spans) < _SMALL_BYTES:
        pattern = _pattern(needles)
        found = [match.start() for start, end in spans for match in pattern.finditer(data, start, end)]
        return np.array(found, np.int64)
    starts, pieces = [], []
    for start, end in spans:
        while start < end:
            # Pieces of whole lines: one long text would be copied again and again.
            stop = min(data.find(b"\n", start + _PIECE_BYTES, end) + 1 or end, end)
            starts.append(start)
            pieces.append(data[start:stop])
            start = stop
    found_at = pl.Series(pieces, dtype=pl.Binary).cast(pl.String).str.find_many(list(needles), leftmost=True)
    counts = found_at.list.len().to_numpy()
    offsets: NDArray[np.int64] = np.repeat(np.array(starts, np.int64), counts)
    offsets += found_at.explode().drop_nulls().to_numpy()
    return offsets


@lru_cache(maxsize=16)
def _pattern(needles: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile("|".join(map(re.escape, needles)).encode())
