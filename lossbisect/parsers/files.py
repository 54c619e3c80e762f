"""Files to plain bytes: opened whatever the compression, one after the other as one log."""

import bz2
import gzip
import io
import lzma
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from lossbisect.errors import ParseError
from lossbisect.parsers.source import Stream

__all__ = ["EVENT_FILE_MARK", "STDIN", "UNPACKING_ERRORS", "open_log", "saved_stdin"]

STDIN = "-"
"""The name that stands for standard input."""
EVENT_FILE_MARK = "tfevents"
"""Text in the name of every event file of TensorBoard."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ZSTD = b"\x28\xb5\x2f\xfd"
_PACKED: tuple[tuple[bytes, Callable[[BinaryIO], Stream]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
UNPACKING_ERRORS: tuple[type[Exception], ...] = (OSError, lzma.LZMAError, zlib.error)
"""What reading a damaged archive raises; one that just ends too early raises EOFError."""


@contextmanager
def open_log(paths: Sequence[Path]) -> Iterator[Stream]:
    """A context with the plain bytes of a log's parts, in order.

    A part is unpacked if its first bytes say gzip, bzip2, xz or zstd, whatever its name says.

    Raises:
        ParseError: A path is missing, a directory, not readable or empty.
    """
    for path in paths:
        with _opened(path):  # a part that can't be read is named before hours of others are
            pass
    if len(paths) == 1:
        with _opened(paths[0]) as stream:
            yield stream
    else:
        yield _Parts(paths)


@contextmanager
def saved_stdin() -> Iterator[Path]:
    """A context with a file that holds what standard input gives, since a log may be read twice."""
    with tempfile.NamedTemporaryFile(prefix="lossbisect-stdin-") as file:
        try:
            shutil.copyfileobj(sys.stdin.buffer, file)
        except OSError as error:
            raise ParseError(f"{STDIN}: can't be read: {error.strerror or error}.") from None
        file.flush()
        if not file.tell():
            raise ParseError(f"{STDIN}: is empty. Did the program before it write to stderr?")
        yield Path(file.name)


class _Parts:
    """The bytes of several files as one stream; only one is open at a time."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._streams = (stream for path in paths for stream in _single(path))
        self._current = next(self._streams, None)

    def read1(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none only at the end."""
        while self._current is not None:
            with suppress(EOFError):  # a part still being packed: the next one goes on
                if data := self._current.read1(size):
                    return data
            self._current = next(self._streams, None)
        return b""


def _single(path: Path) -> Iterator[Stream]:
    with _opened(path) as stream:
        yield stream


@contextmanager
def _opened(path: Path) -> Iterator[Stream]:
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
        if head.startswith(_ZSTD):
            yield _Zstd(raw, path)
            return
        for magic, unpack in _PACKED:
            if head.startswith(magic):
                with unpack(raw) as stream:  # type: ignore[attr-defined]
                    yield stream
                return
        yield raw


class _Zstd:
    """The plain bytes of a zstd file."""

    def __init__(self, raw: BinaryIO, path: Path) -> None:
        try:
            import zstandard
        except ModuleNotFoundError:
            raise ParseError(
                f"{path}: is packed with zstd, which needs 'pip install lossbisect[zstd]'; or unpack it first."
            ) from None
        self._error: type[Exception] = zstandard.ZstdError
        self._reader: Any = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)

    def read1(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none only at the end."""
        try:
            return bytes(self._reader.read(size))
        except self._error as error:
            raise OSError(str(error)) from None
