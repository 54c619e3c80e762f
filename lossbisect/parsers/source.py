r"""Bytes of a log: opened whatever the compression, handed on in blocks of whole lines.

Nothing here knows what a log says. Lines are parted by ``\n``, ``\r\n`` or a lone ``\r`` (progress bars rewrite
their line with it), but counted by ``\n`` only, as ``sed``, ``grep -n`` and editors count them.
"""

import bz2
import gzip
import io
import lzma
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from lossbisect.errors import ParseError

__all__ = ["BLOCK_BYTES", "Block", "BlockReader", "Line", "Stream", "clean", "open_log"]

BLOCK_BYTES = 8 << 20
"""Bytes read at a time. A reader holds about three blocks, whatever the size of the log."""

_LONGEST_LINE = 64 << 20
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PACKED: tuple[tuple[bytes, Callable[[BinaryIO], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
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

    __slots__ = ("_at", "_at_line", "_returns", "data", "is_last", "line_no")

    def __init__(self, data: bytes, *, line_no: int, is_last: bool) -> None:
        self._returns: list[int] = []
        if b"\r" in data:
            # A carriage return parts text, but is no line of the file.
            self._returns = [match.start() for match in re.finditer(rb"\r", data)]
            data = data.replace(b"\r", b"\n")
        self.data = data
        self.line_no = line_no
        self.is_last = is_last
        self._at, self._at_line = 0, line_no

    def number_at(self, offset: int) -> int:
        """The 1-based physical line of an offset; cheap where offsets are asked for in rising order."""
        if offset < self._at:
            self._at, self._at_line = 0, self.line_no
        self._at_line += self.data.count(b"\n", self._at, offset)
        self._at = offset
        return self._at_line - bisect_left(self._returns, offset)

    def number_of(self, index: int, start: int) -> int:
        """The 1-based physical line of the block's line with an index (from 0) and a start."""
        return self.line_no + index - (bisect_left(self._returns, start) if self._returns else 0)

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


@contextmanager
def open_log(path: Path) -> Iterator[Stream]:
    """A context with the log's plain bytes, unpacked if its first bytes say gzip, bzip2 or xz, whatever its name says.

    Raises:
        ParseError: The path is missing, a directory, not readable or empty.
    """
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise ParseError(f"{path}: no such file. Check the path.") from None
    except IsADirectoryError:
        raise ParseError(f"{path}: is a directory, not a log. Name the file that holds the training rows.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParseError(f"{path}: can't be read: {reason}. Check the path and its permissions.") from None
    with raw:
        try:
            head = raw.peek(6)[:6]
        except OSError as error:
            raise ParseError(f"{path}: can't be read: {error.strerror or error}. Check the file.") from None
        if not head:
            raise ParseError(f"{path}: is empty. Did the run write its log elsewhere?")
        if head.startswith(_UTF16_MARKS):
            # PowerShell's `>` writes UTF-16.
            yield io.BytesIO(raw.read().decode("utf-16", "replace").encode("utf-8", "replace"))
            return
        for magic, unpack in _PACKED:
            if head.startswith(magic):
                with unpack(raw) as stream:
                    yield stream
                return
        yield raw


class BlockReader:
    """Hands out blocks, each starting where the last one's reader stopped.

    Attributes:
        was_cut: Whether a compressed log ended in mid-stream.
    """

    def __init__(self, stream: Stream, path: Path, block_bytes: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._path = path
        self._block_bytes = block_bytes
        self._rest = b""
        self._line_no = 1
        self._is_done = False
        self.was_cut = False
        self._last = b""

    def head(self) -> str:
        """The first kilobyte or so, decoded; it stays to be read."""
        if not self._rest:
            self._rest = self._read()
        return self._rest[:1024].decode("utf-8", "replace")

    def read(self) -> Block | None:
        """The next block, or None after the last one."""
        if self._is_done:
            return None
        parts = [self._rest]
        while True:
            part = self._read()
            parts.append(part)
            if not part or b"\n" in part or sum(map(len, parts)) > _LONGEST_LINE:
                break
        data = b"".join(parts)
        if part:
            cut = data.rfind(b"\n") + 1 or len(data)
            data, self._rest = data[:cut], data[cut:]
        else:
            self._is_done, self._rest = True, b""
        self._last = clean(data)
        block = Block(self._last, line_no=self._line_no, is_last=self._is_done)
        self._line_no += data.count(b"\n")
        return block

    def keep(self, offset: int) -> None:
        """Start the next block at an offset of the last one: what stands there needs lines that aren't read yet."""
        kept = self._last[offset:]
        self._line_no -= kept.count(b"\n")
        self._rest = kept + self._rest

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
        return b"".join(parts)
