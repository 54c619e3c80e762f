"""Processes that scan the blocks of one large plain file.

Each is a fresh interpreter: a fork would copy the locks of polars' threads as they are. It takes spans of the file on
its standard input and gives what they hold on its standard output. If one fails, its span is scanned here.
"""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import BinaryIO, Self

from lossbisect.cores import usable_cores
from lossbisect.parsers.rowscan import Layouts
from lossbisect.parsers.scan import Scan, scan
from lossbisect.parsers.source import BLOCK_BYTES, Block, BlockReader, clean

__all__ = ["Workers", "serve", "workers_for"]

_SMALLEST_BYTES = 256 << 20  # below, starting workers takes as long as they save
_MOST_WORKERS = 8
_NEAR_BYTES = 1 << 16
_SPAN = struct.Struct("<QQ?")
_START = "import sys; sys.path[:] = {path!r}; from lossbisect.parsers.workers import serve; serve({file!r})"
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def workers_for(reader: BlockReader) -> "Workers | None":
    """Workers for a log's file if it is large enough, and there is more than one processor."""
    path = reader.plain_file
    count = min(usable_cores(), _MOST_WORKERS)
    if path is None or count < 2 or not sys.executable or path.stat().st_size < _SMALLEST_BYTES:
        return None
    return Workers(path.absolute(), count)


class Workers:
    """A context with processes that scan parts of a file.

    Attributes:
        count: How many.
    """

    def __init__(self, path: Path, count: int) -> None:
        self.count = count
        self._path = path
        self._n_bytes = path.stat().st_size
        self._layouts = Layouts()
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pool = ThreadPoolExecutor(count)  # each waits for one process

    def __enter__(self) -> Self:
        """Start the processes, which get ready while others work."""
        code = _START.format(path=sys.path, file=str(self._path))
        for _ in range(self.count):
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
            )
            self._processes.append(process)
            self._idle.put(process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End them, whatever they do."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)
        for process in self._processes:
            with process:
                pass

    def spans(self, start: int) -> Iterator[tuple[int, int]]:
        """The parts of the file from an offset on, each of whole lines, as a `BlockReader` goes on."""
        target = -(-start // BLOCK_BYTES) * BLOCK_BYTES
        with self._path.open("rb") as file:
            while start < self._n_bytes:
                stop = 0
                while not stop:
                    target += BLOCK_BYTES
                    stop = self._n_bytes if target >= self._n_bytes else _last_line_end(file, start, target)
                yield start, stop
                start = stop

    def block(self, start: int, stop: int, line_no: int) -> Block:
        """A part of the file, whose first line has a number."""
        return _block(self._path, start, stop, line_no=line_no, is_last=stop == self._n_bytes)

    def submit(self, start: int, stop: int) -> Future[Scan]:
        """What a part of the file holds; lines are counted from 0."""
        return self._pool.submit(self._scan, start, stop)

    def _scan(self, start: int, stop: int) -> Scan:
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            # Not buffered: what a dead process didn't take must not come up again when the pipe is closed.
            os.write(process.stdin.fileno(), _SPAN.pack(start, stop, stop == self._n_bytes))
            result = pickle.load(process.stdout)  # noqa: S301 - from our own process
            assert isinstance(result, Scan)
        except (OSError, EOFError, pickle.UnpicklingError):
            result = scan(self.block(start, stop, 0), self._layouts)
        finally:
            self._idle.put(process)
        return result


def serve(path: str) -> None:
    """Scan the parts of a file that standard input names, until it ends."""
    layouts = Layouts()
    while request := sys.stdin.buffer.read(_SPAN.size):
        start, stop, is_last = _SPAN.unpack(request)
        result = scan(_block(Path(path), start, stop, line_no=0, is_last=is_last), layouts)
        pickle.dump(result, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


def _block(path: Path, start: int, stop: int, *, line_no: int, is_last: bool) -> Block:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        return Block(clean(file.read(stop - start)), line_no=line_no, is_last=is_last)


def _last_line_end(file: BinaryIO, start: int, stop: int) -> int:
    """Where the last line ends that ends in a part of a file; 0 if none does."""
    for first in (max(start, stop - _NEAR_BYTES), start):
        file.seek(first)
        if place := file.read(stop - first).rfind(b"\n") + 1:
            return first + place
    return 0
