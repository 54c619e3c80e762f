"""A log that grows: read on from where the last look ended, through rotation, truncation and restarts.

Only what was added is read and parsed, with two things that its rows are understood by: the file's head up to its first
rows (who wrote it, its configuration) and the two rows before the new ones.
"""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from lossbisect.errors import ParseError
from lossbisect.parsers.runlog import RunLog

__all__ = ["GrowingLog"]

_ROW = b" iteration "
_END_MARKS = (b"[after training is done]", b"[exiting program")
_HEAD_ROWS = 4
_MOST_CONTEXT_BYTES = 1 << 20
_CHECKED_BYTES = 4096
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd")


@dataclass(slots=True)
class _File:
    """What was read of the file that is there now.

    Attributes:
        inode: Its number; another one is another file.
        head: Its beginning, up to the end of its first rows.
        is_head_whole: Whether those rows were there.
        context: The end of what was read, from the last row but one on.
        offset: Bytes read: always up to the end of a line.
        lines: Lines read.
    """

    inode: int
    head: bytes = b""
    is_head_whole: bool = False
    context: bytes = b""
    offset: int = 0
    lines: int = 0


@dataclass(slots=True)
class GrowingLog:
    """A log that is looked at again and again.

    Attributes:
        path: Where it is, or will be.
        log: All rows so far; a file that was replaced adds its rows as a further attempt. None before the first row.
        has_ended: Whether the run's own end mark is newer than its newest row.
        bytes_read: How much was read in all.
    """

    path: Path
    log: RunLog | None = None
    has_ended: bool = False
    bytes_read: int = 0
    _file: _File | None = None
    _stamp: tuple[int, int, int] | None = None
    _before: RunLog | None = None

    def look(self) -> bool:
        """Read what was added; False where nothing was."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False
        stamp = status.st_ino, status.st_size, status.st_mtime_ns
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        with self.path.open("rb") as file:
            current = self._file
            if current is None or current.inode != status.st_ino or not _goes_on(file.fileno(), current):
                current = self._file = _File(inode=status.st_ino)
            new = os.pread(file.fileno(), max(0, status.st_size - current.offset), current.offset)
        self.bytes_read += len(new)
        if current.offset == 0 and new.startswith(_PACKED):
            self.log = _parsed(new, self.path) or self.log  # packed: there is no reading on
            return True
        new = new[: new.rfind(b"\n") + 1]  # a line that isn't whole yet is read again with its rest
        if new:
            self._add(current, new)
        return True

    def _add(self, current: _File, new: bytes) -> None:
        if not current.is_head_whole:
            text, known_lines = current.head + new, 0
            current.head = text
            end = _end_of_rows(text, _HEAD_ROWS)
            if end is not None:
                current.head, current.is_head_whole = text[:end], True
        else:
            text = current.head + current.context + new
            known_lines = (current.head + current.context).count(b"\n")
        if max(text.rfind(mark) for mark in _END_MARKS) > text.rfind(_ROW):
            self.has_ended = True
        elif _ROW in new:
            self.has_ended = False
        parsed = _parsed(text, self.path)
        # While the head grows all of it is read anew; later only rows after the known lines are news.
        self._take(parsed, current, since_line=known_lines)
        current.offset += len(new)
        current.lines += new.count(b"\n")
        current.context = _last_rows(text[len(current.head) :] if known_lines == 0 else current.context + new)

    def _take(self, parsed: RunLog | None, current: _File, *, since_line: int) -> None:
        """Add the rows after a line of what was parsed."""
        import polars as pl

        if parsed is None:
            return
        if since_line == 0:
            older = self._older(current)
            shift, first = 0, 0 if older is None else _last_attempt(older) + 1
            rows, notes = parsed.iterations, list(parsed.notes)
        else:
            assert self.log is not None
            older = self.log
            shift = current.lines - since_line
            known = parsed.iterations.filter(pl.col("line_no") <= since_line)
            same = known["attempt"][-1] if known.height else 0
            first = _last_attempt(older) - same
            rows = parsed.iterations.filter(pl.col("line_no") > since_line)
            notes = [note for note in parsed.notes if note.line_no is None or note.line_no > since_line]
            notes = [note._replace(line_no=note.line_no + shift if note.line_no else None) for note in notes]
        rows = rows.with_columns(pl.col("attempt") + first, pl.col("line_no") + shift)
        if older is not None:
            rows = pl.concat([older.iterations, rows], how="diagonal_relaxed")
            notes = [*older.notes, *(note for note in notes if note not in older.notes)]
        self.log = replace(parsed, path=self.path, iterations=rows, notes=tuple(notes))

    def _older(self, current: _File) -> RunLog | None:
        """The rows of files that were here before, which a file read from its start adds to."""
        if current.offset == 0 and self.log is not None and self.log.iterations.height:
            self._before = self.log
        return self._before


def _goes_on(descriptor: int, current: _File) -> bool:
    """Whether the file still has what was read before."""
    known = (current.context if current.is_head_whole and current.context else current.head)[-_CHECKED_BYTES:]
    return os.pread(descriptor, len(known), current.offset - len(known)) == known


def _end_of_rows(text: bytes, rows: int) -> int | None:
    """Offset after the line of the row of that number; None if there aren't so many rows."""
    at = -1
    for _ in range(rows):
        at = text.find(_ROW, at + 1)
        if at < 0:
            return None
    return text.find(b"\n", at) + 1


def _last_rows(text: bytes) -> bytes:
    """The end of the text, from the line of the last row but one on."""
    last = text.rfind(_ROW)
    before = text.rfind(_ROW, 0, max(0, last))
    start = text.rfind(b"\n", 0, max(0, before)) + 1
    return text[max(start, len(text) - _MOST_CONTEXT_BYTES) :]


def _last_attempt(log: RunLog) -> int:
    return int(log.iterations["attempt"][-1]) if log.iterations.height else -1


def _parsed(text: bytes, path: Path) -> RunLog | None:
    """What the text says; None while it holds nothing that can be read."""
    from lossbisect.parsers import read_log

    with tempfile.NamedTemporaryFile(suffix=path.suffix) as copy:
        copy.write(text)
        copy.flush()
        try:
            return read_log(copy.name)
        except ParseError:
            return None
