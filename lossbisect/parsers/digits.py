"""Many texts of one shape at once, eight bytes at a time.

The texts are the columns of a matrix of *words*: eight bytes as one little-endian number, so the first byte is the
lowest. What would be a loop over characters is then a few operations on a row.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    type Bools = NDArray[np.bool_]
    type Floats = NDArray[np.float64]
    type Offsets = NDArray[np.int64]
    type Words = NDArray[np.uint64]

__all__ = ["MOST_DIGITS", "Shape", "fits", "read_decimal", "read_digits", "read_text", "texts_at", "width_of"]

MOST_DIGITS = 15
"""A double holds every integer of so many digits."""

_MOST_POWER = 22  # a double holds this power of ten, and all before it, exactly
_ONES = 0x0101010101010101


@dataclass(frozen=True, slots=True)
class Shape:
    """What texts have in common.

    Attributes:
        text: One of them.
        digits: Places where any digit may stand.
    """

    text: bytes
    digits: frozenset[int]


def width_of(shape: Shape) -> int:
    """Bytes that a text of a shape takes in a matrix of words."""
    return -(-len(shape.text) // 8) * 8


def texts_at(data: bytes, starts: "Offsets", width: int) -> "Words":
    """The texts of some bytes' width, a multiple of 8, that start at offsets, as columns of words."""
    import numpy as np

    every = np.ndarray(max(0, len(data) - width + 1), dtype=f"V{width}", buffer=data, strides=(1,))
    words: Words = np.ascontiguousarray(every[starts].view("<u8").reshape(len(starts), width // 8).T)
    return words


def fits(texts: "Words", shape: Shape) -> "Bools":
    """Which texts have a shape."""
    import numpy as np

    size = 8 * len(texts)
    text = np.zeros(size, np.uint8)
    text[: len(shape.text)] = np.frombuffer(shape.text, np.uint8)
    compared, low = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    compared[: len(shape.text)] = 0xFF
    # Of a digit the high half must be 3, and the low half must not reach 16 when 6 is added.
    digits = list(shape.digits)
    compared[digits], low[digits] = 0xF0, 0x0F
    differs = texts ^ _column(text)
    differs &= _column(compared)
    places = np.flatnonzero(low.view("<u8"))
    carried = texts[places] & _column(low)[places]
    carried += _column(low & np.uint8(0x06))[places]
    carried &= np.uint64(0xF0 * _ONES)
    wrong = np.bitwise_or.reduce(differs, axis=0) | np.bitwise_or.reduce(carried, axis=0)
    found: Bools = wrong == 0
    return found


def _column(octets: "NDArray[np.uint8]") -> "Words":
    """Bytes that are the same for every text."""
    return octets.view("<u8")[:, None]


def read_text(texts: "Words", start: int, end: int) -> "NDArray[np.bytes_]":
    """The bytes from one place up to another; empty if there is none."""
    import numpy as np

    if start == end:
        return np.zeros(texts.shape[1], "S1")
    first, last = start // 8, -(-end // 8)
    characters = np.ascontiguousarray(texts[first:last].T).view(np.uint8)
    return np.ascontiguousarray(characters[:, start - 8 * first : end - 8 * first]).view(f"S{end - start}")[:, 0]


def read_digits(texts: "Words", start: int, end: int) -> "Words":
    """The whole number from one place up to another, all digits."""
    import numpy as np

    if end - start == 1:
        digit: Words = (texts[start // 8] >> np.uint64(8 * (start % 8))) & np.uint64(0x0F)
        return digit
    value = np.zeros(texts.shape[1], np.uint64)
    for first in range(start, end, 8):
        n_bytes = min(8, end - first)
        part = _eight_digits(_last_bytes(texts, first + n_bytes, n_bytes))
        value = value * np.uint64(10**n_bytes) + part if first > start else part
    return value


def read_decimal(texts: "Words", start: int, point: int, end: int, exponent_sign: int) -> tuple["Floats", "Bools"]:
    """Numbers such as ``12.5`` or ``1.037740E+01`` whose places hold digits, and whether each was read.

    Each is the double nearest to its decimal text: the digits and the power of ten are both exact, so that their one
    multiplication or division is the only rounding. What would need more isn't read.

    Args:
        texts: The texts.
        start: Place of the first digit.
        point: Place of the decimal point.
        end: Place after the last digit, not counting an exponent.
        exponent_sign: 1 or -1 if ``E+01`` or ``E-01`` follows, 0 if nothing does.
    """
    import numpy as np

    n_decimals = end - point - 1
    digits = read_digits(texts, start, point) * np.uint64(10**n_decimals) + read_digits(texts, point + 1, end)
    mantissa = digits.astype(np.float64)
    powers = 10.0 ** np.arange(_MOST_POWER + 1)
    if not exponent_sign:
        return mantissa / powers[n_decimals], np.ones(texts.shape[1], np.bool_)
    exponent = exponent_sign * read_digits(texts, end + 2, end + 4).astype(np.int64) - n_decimals
    size = np.abs(exponent)
    power = powers[np.minimum(size, _MOST_POWER)]
    return np.where(exponent < 0, mantissa / power, mantissa * power), size <= _MOST_POWER


def _last_bytes(texts: "Words", end: int, n_bytes: int) -> "Words":
    """The up to eight bytes before a place, behind as many ``0`` as make them eight."""
    import numpy as np

    index, shift = divmod(end, 8)
    if shift == 0:
        word = texts[index - 1]
    else:
        word = texts[index] << np.uint64(64 - 8 * shift)
        if n_bytes > shift:
            word |= texts[index - 1] >> np.uint64(8 * shift)
    if n_bytes < 8:
        used = (1 << 64) - (1 << 8 * (8 - n_bytes))
        word = (word & np.uint64(used)) | np.uint64(0x30 * _ONES & ~used)
    last: Words = word
    return last


def _eight_digits(word: "Words") -> "Words":
    """The number that eight digits say, blanks counting as 0: pairs, then fours, then all."""
    import numpy as np

    word = word & np.uint64(0x0F * _ONES)
    word = ((word * np.uint64(2561)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    word = ((word * np.uint64(6553601)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    number: Words = (word * np.uint64(42949672960001)) >> np.uint64(32)
    return number
