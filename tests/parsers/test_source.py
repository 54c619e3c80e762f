"""Files as they come: packed, cut, damaged, not there."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.errors import ParseError, UnknownFormatError
from lossbisect.parsers import read_log
from lossbisect.parsers.files import open_log
from lossbisect.parsers.source import Block, BlockReader, clean

ROW = (
    " iteration {i:8d}/     100 | consumed samples: {i:12d} | elapsed time per iteration (ms): 5.0 |"
    " learning rate: 1.000000E-03 | global batch size:     8 | lm loss: 2.500000E+00 | loss scale: 1.0 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)
LOG = "".join(f"{ROW.format(i=i)}\n" for i in range(1, 101)).encode()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_packed_logs_read_as_plain_ones(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Compression is told by the first bytes, not by the name."""
    path = tmp_path / "train.log"
    path.write_bytes(pack(LOG))
    assert read_log(path).iterations["iteration"].to_list() == list(range(1, 101))


def test_cut_archive_gives_what_it_holds(tmp_path: Path) -> None:
    """A gzip file that is still being written gives its rows so far, and a note."""
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(os.urandom(40_000).hex().encode() + b"\n" + LOG)[:-8])
    log = read_log(path)
    assert log.iterations.height >= 90
    assert "cut-archive" in [note.kind for note in log.notes]


def test_utf16_log_is_read(tmp_path: Path) -> None:
    """A log that PowerShell's `>` wrote as UTF-16 reads as any other."""
    path = tmp_path / "train.log"
    path.write_bytes(LOG.decode().replace("\n", "\r\n").encode("utf-16"))
    assert read_log(str(path)).iterations.height == 100


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing.log", "no such file"),
        ("folder", "is a directory"),
        ("empty.log", "is empty"),
        ("nul\0.log", "can't be read"),
    ],
)
def test_unusable_paths_are_named(tmp_path: Path, name: str, says: str) -> None:
    """Each way a path can be wrong has its own message, with the path in front."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.log").touch()
    with pytest.raises(ParseError, match=says) as raised:
        read_log(tmp_path / name)
    assert str(raised.value).startswith(str(tmp_path))


def test_damaged_archive_is_named(tmp_path: Path) -> None:
    """Bytes that can't be unpacked are an error of ours."""
    path = tmp_path / "train.log.gz"
    data = bytearray(gzip.compress(LOG))
    data[20:60] = bytes(40)
    path.write_bytes(bytes(data))
    with pytest.raises(ParseError, match="Is the file damaged"):
        read_log(path)


@pytest.mark.parametrize("content", [b"\n", b"hello\nworld\n", bytes(5000), b"iteration 5 of 10\n", b"{}"])
def test_other_files_are_unknown_formats(tmp_path: Path, content: bytes) -> None:
    """A readable file that is no log of ours is refused in one line that says what to do."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UnknownFormatError, match="See 'lossbisect parse --formats'"):
        read_log(path)


def test_lines_are_numbered_by_line_feeds() -> None:
    """A lone carriage return parts text but counts no line; one before a line feed belongs to it."""
    block = Block(clean(b"a\r\nb\rc\rd\ne"), line_no=7, is_last=True)
    assert [(line.text, line.no) for line in block.lines_from(0)] == [("a", 7), ("b", 8), ("c", 8), ("d", 8), ("e", 9)]


def test_colours_are_stripped() -> None:
    """Terminal sequences vanish; a line end after a broken one doesn't."""
    assert clean(b"\x1b[1;36mrow\x1b[0m\x1b]0;title\x07!\n\x1b]0;title\n") == b"row!\n0;title\n"


def test_block_is_carried_into_the_next(tmp_path: Path) -> None:
    """Text that a block could not finish comes again at the start of the next one, under its line numbers."""
    path = tmp_path / "x"
    path.write_bytes(b"one\r\ntwo\rtwo\r\nthree\r\n")
    with open_log([path]) as stream:
        reader = BlockReader(stream, path, block_bytes=8)
        first, second = reader.read(), reader.read()
        assert first is not None
        assert second is not None
        assert first.data == b"one\n"
        carried = first.carried_into(second, 0)
        assert carried.data.startswith(b"one\ntwo\ntwo\n")
        assert [line.no for line in carried.lines_from(0)][:3] == [1, 2, 2]
