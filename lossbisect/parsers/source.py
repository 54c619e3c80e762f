r"""Bytes of a log, handed on in blocks of whole lines.

Nothing here knows what a log says. Lines are parted by ``\n``, ``\r\n`` or a lone ``\r`` (progress bars rewrite
their line with it), but counted by ``\n`` only, as ``sed``, ``grep -n`` and editors count them.
"""

import io
import lzma
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lossbisect.errors import ParseError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BLOCK_BYTES", "Block", "BlockReader", "Line", "Stream", "clean"]

BLOCK_BYTES = 8 << 20
"""Bytes read at a time. A reader holds about three blocks, whatever the size of the log."""

_LONGEST_LINE = 64 << 20
_NEAR_BYTES = 1 << 14
_CACHED_BYTES = 1 << 17
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Line(NamedTuple):
    """One line of a block.

    Attributes:
        no: 1-based physical line of the file.
        start: Offset of its first byte in the block.
        end: Offset after its last byte, without the line's end.
        text: Decoded; bytes that aren't UTF-8 became U+FFFD.
        is_ended: Whether a line end follows; false only at the end of a file that was cut.
    """

    no: int
    start: int
    end: int
    text: str
    is_ended: bool


class Stream(Protocol):
    """What a reader needs of an open file."""

    def read1(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none only at the end."""


class Block:
    """A run of whole lines of UTF-8, each ended by a line feed.

    Attributes:
        data: The bytes.
        line_no: 1-based physical line of the first byte.
        is_last: Whether the file ends with this block.
    """

    def __init__(self, data: bytes, *, line_no: int, is_last: bool) -> None:
        self._printed = data
        self._returns: list[int] = []
        if b"\r" in data:
            # A carriage return parts text, but is no line of the file.
            self._returns = [match.start() for match in re.finditer(rb"\r", data)]
            data = data.replace(b"\r", b"\n")
        self.data = data
        self.line_no = line_no
        self.is_last = is_last
        self._at, self._at_line = 0, line_no

    def carried_into(self, following: "Block", offset: int) -> "Block":
        """The following block, made to start at an offset of this one."""
        kept = self._printed[offset:]
        line_no = following.line_no - kept.count(b"\n")
        return Block(kept + following._printed, line_no=line_no, is_last=following.is_last)  # noqa: SLF001

    def numbers_at(self, offsets: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """The 1-based physical line of each offset."""
        import numpy as np

        before, bits = self._line_ends
        word, bit = offsets >> 6, (offsets & 63).astype(np.uint64)
        within = np.bitwise_count(bits[word] & ((np.uint64(1) << bit) - np.uint64(1)))
        numbers: NDArray[np.int64] = self.line_no + before[word] + within
        return numbers - np.searchsorted(np.array(self._returns), offsets) if self._returns else numbers

    @property
    def next_line_no(self) -> int:
        """The 1-based physical line of what follows the block."""
        return self.line_no + int(self._line_ends[0][-1]) - len(self._returns)

    def number_at(self, offset: int) -> int:
        """The 1-based physical line of an offset; cheap where offsets are asked for in rising order."""
        import numpy as np

        if not 0 <= offset - self._at < _NEAR_BYTES:
            return int(self.numbers_at(np.array([offset]))[0])
        self._at_line += self.data.count(b"\n", self._at, offset)
        self._at = offset
        return self._at_line - bisect_left(self._returns, offset)

    @cached_property
    def _line_ends(self) -> "tuple[NDArray[np.int64], NDArray[np.uint64]]":
        """Line feeds before every 64 bytes, and those among them as bits."""
        import numpy as np

        data = np.frombuffer(self.data, np.uint8)
        words = np.zeros(len(data) // 64 + 2, "<u8")  # the last one stays empty
        bits = words.view(np.uint8)
        for start in range(0, len(data), _CACHED_BYTES):  # parts that stay in the processor's cache
            packed = np.packbits(data[start : start + _CACHED_BYTES] == ord("\n"), bitorder="little")
            bits[start // 8 : start // 8 + len(packed)] = packed
        counts = np.bitwise_count(words)
        return np.cumsum(counts, dtype=np.int64) - counts, words

    def line_at(self, offset: int) -> Line:
        """The line that holds an offset."""
        data = self.data
        start = data.rfind(b"\n", 0, offset) + 1
        end = data.find(b"\n", offset)
        end, is_ended = (len(data), False) if end < 0 else (end, True)
        text = data[start:end].decode()
        return Line(no=self.number_at(start), start=start, end=end, text=text, is_ended=is_ended)

    def lines_from(self, offset: int) -> Iterator[Line]:
        """The line that holds an offset and all after it, one at a time."""
        while offset < len(self.data):
            line = self.line_at(offset)
            yield line
            offset = line.end + 1

    def next_line(self, line: Line) -> Line | None:
        """The line after a line, or None at the end of the block."""
        return self.line_at(line.end + 1) if line.end + 1 < len(self.data) else None


def clean(data: bytes) -> bytes:
    r"""The same text as UTF-8, without terminal colours and with ``\n`` for ``\r\n``; lone ``\r`` stay."""
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


class BlockReader:
    """Hands out a log's blocks.

    Attributes:
        was_cut: Whether a compressed log ended in mid-stream.
        n_bytes: Bytes of the log that were handed out.
    """

    def __init__(self, stream: Stream, path: Path, block_bytes: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._path = path
        self._block_bytes = block_bytes
        self._rest = b""
        self._line_no = 1
        self._is_at_end = self._is_done = False
        self.was_cut = False
        self.n_bytes = 0

    @property
    def plain_file(self) -> Path | None:
        """The log, if it is a single file as it lies on the disk."""
        is_plain = isinstance(self._stream, io.BufferedReader) and isinstance(self._stream.name, str | os.PathLike)
        return Path(self._stream.name) if is_plain else None  # type: ignore[attr-defined]

    def head(self) -> str:
        """The first kilobyte or so, decoded; it stays to be read."""
        if not self._rest and not self._is_at_end:
            self._rest = self._read()
        return self._rest[:1024].decode("utf-8", "replace")

    def read(self) -> Block | None:
        """The next block, or None after the last one."""
        if self._is_done:
            return None
        parts: list[bytes | memoryview] = [self._rest]
        n_bytes = len(self._rest)
        self._rest = b""
        while not self._is_at_end:
            part = self._read()
            n_bytes += len(part)
            cut = 0 if self._is_at_end else part.rfind(b"\n") + 1
            if cut == 0 and n_bytes > _LONGEST_LINE:
                cut = len(part)
            if cut:
                self._rest = part[cut:]
                parts.append(memoryview(part)[:cut])
                break
            parts.append(part)
        else:
            self._is_done = True
        data = b"".join(parts)
        self.n_bytes += len(data)
        block = Block(clean(data), line_no=self._line_no, is_last=self._is_done)
        self._line_no = block.next_line_no
        return block

    def _read(self) -> bytes:
        parts: list[bytes] = []
        missing = self._block_bytes
        try:
            # read1, not read: a compressed log that was cut raises at its end, and read would lose what came before.
            while missing > 0 and (part := self._stream.read1(missing)):
                parts.append(part)
                missing -= len(part)
        except EOFError:
            self.was_cut = True
        except (OSError, lzma.LZMAError, zlib.error) as error:
            raise ParseError(f"{self._path}: can't be read: {error}. Is the file damaged?") from None
        self._is_at_end = missing > 0
        return b"".join(parts)
