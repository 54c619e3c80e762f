"""Many texts of one shape at once.

The texts are the rows of a matrix of bytes. The digits of each of their numbers are gathered into a *word*: eight
bytes, `0` in front, as one little-endian integer. What would be a loop over characters is then a few operations on all
words.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Bools = NDArray[np.bool_]
    type Floats = NDArray[np.float64]
    type Octets = NDArray[np.uint8]
    type Offsets = NDArray[np.int64]
    type Words = NDArray[np.uint64]

__all__ = ["MOST_DIGITS", "Shape", "scaled", "texts_at"]

MOST_DIGITS = 15
"""A double holds every integer of so many digits."""

_MOST_POWER = 22  # a double holds this power of ten, and all before it, exactly
_WORD = 8


class Shape:
    """What texts have in common.

    Attributes:
        text: One of them.
    """

    def __init__(self, text: bytes, digits: frozenset[int], numbers: Sequence[Sequence[int]]) -> None:
        """A shape.

        Args:
            text: One of the texts.
            digits: Places where any digit may stand.
            numbers: For each number to read the places of its at most `MOST_DIGITS` digits, the highest first.
        """
        self.text = text
        self._n_words = [-(-len(places) // _WORD) for places in numbers]
        others = sorted(digits.difference(*numbers))
        padding = self.width - 1
        self._places: list[int] = []
        for places in (*numbers, others):
            self._places += [padding] * (-len(places) % _WORD) + list(places)

    @property
    def width(self) -> int:
        """Bytes that a text takes in a matrix: a multiple of 8, with at least one byte to spare."""
        return (len(self.text) // _WORD + 1) * _WORD

    def read(self, texts: "Octets") -> "tuple[Bools, list[Words]]":
        """Which texts have the shape, and the numbers of those: one array a number. The texts' last bytes are lost."""
        import numpy as np

        differs = texts.view("<u8") ^ self._expected
        differs &= self._compared
        is_alike = np.bitwise_or.reduce(differs, axis=1) == 0
        texts[:, -1] = ord("0")
        digits = texts.take(self._places, axis=1)
        digits -= np.uint8(ord("0"))  # what comes before "0" becomes large
        is_alike &= digits.max(axis=1) <= 9
        words = digits.view("<u8")[:, : sum(self._n_words)]
        parts = iter(_values((words if is_alike.all() else words[is_alike]).T))
        numbers = [next(parts) if count == 1 else next(parts) * 10**_WORD + next(parts) for count in self._n_words]
        return is_alike, numbers

    @cached_property
    def _expected(self) -> "Words":
        import numpy as np

        return np.frombuffer(self.text.ljust(self.width, b"\0"), "<u8")

    @cached_property
    def _compared(self) -> "Words":
        """All bits of the places that must be alike."""
        import numpy as np

        places = np.zeros(self.width, np.uint8)
        places[: len(self.text)] = 0xFF
        places[self._places] = 0
        return places.view("<u8")


def texts_at(data: bytes, starts: "Offsets", width: int) -> "Octets":
    """The bytes of some width from each offset on: one row a text."""
    import numpy as np

    every = np.ndarray(max(0, len(data) - width + 1), dtype=f"V{width}", buffer=data, strides=(1,))
    texts: Octets = every[starts].view(np.uint8).reshape(len(starts), width)
    return texts


def scaled(mantissas: "Floats", exponents: "Offsets") -> "tuple[Floats, Bools]":
    """Whole numbers times powers of ten, and which of them were read.

    Each is the double nearest to its decimal text: the mantissa and the power of ten are both exact, so that their one
    multiplication or division is the only rounding. What would need more isn't read.
    """
    import numpy as np

    sizes = np.abs(exponents)
    powers = (10.0 ** np.arange(_MOST_POWER + 1))[np.minimum(sizes, _MOST_POWER)]
    values: Floats = np.where(exponents < 0, mantissas / powers, mantissas * powers)
    return values, sizes <= _MOST_POWER


def _values(words: "Words") -> "Words":
    """The number that the eight digits of each word say: pairs, then fours, then all."""
    import numpy as np

    values = np.ascontiguousarray(words)
    for factor, shift, kept in (
        (1 + (10 << 8), 8, 0x00FF00FF00FF00FF),
        (1 + (100 << 16), 16, 0x0000FFFF0000FFFF),
        (1 + (10_000 << 32), 32, 0x00000000FFFFFFFF),
    ):
        values = values * np.uint64(factor)
        values >>= np.uint64(shift)
        values &= np.uint64(kept)
    return values
