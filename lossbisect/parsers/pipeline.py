"""Blocks scanned ahead while earlier ones are used: in threads, and those of a large file in processes.

Threads share Python's one lock, so that two of them are hardly faster than one; but a process takes a third of a second
to start. So a large file is scanned by threads for its first blocks, and by processes (`workers`) after that. A log of
one block, as most are, needs neither, nor what they take to import.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lossbisect.parsers.rowscan import Layouts
from lossbisect.parsers.scan import Scan, scan
from lossbisect.parsers.source import Block, BlockReader

if TYPE_CHECKING:
    from concurrent.futures import Future

    from lossbisect.parsers.workers import Workers

__all__ = ["HEAD_BLOCKS", "scans"]

HEAD_BLOCKS = 4
"""So many blocks are at hand; of later ones only what they hold."""

_THREADS = 2


class _Piece(NamedTuple):
    """A block that is being scanned.

    Attributes:
        block: Gives the block, if told the number of its first line.
        scan: What it holds.
        is_relative: Whether its lines are counted from 0.
    """

    block: Callable[[int], Block]
    scan: "Future[Scan]"
    is_relative: bool


def scans(reader: BlockReader) -> Iterator[tuple[Callable[[], Block], Scan]]:
    """Every block of a log, on request, and what it holds, in order.

    A block is scanned on the guess that the one before it ends with whole rows, as nearly all do; where it doesn't,
    what is left of that one is carried into it and it is scanned again.
    """
    layouts = Layouts()
    first = reader.read()
    if first is None:
        return
    if first.is_last:
        yield lambda: first, scan(first, layouts)
    else:
        yield from _scans_ahead(first, reader, layouts)


def _scans_ahead(first: Block, reader: BlockReader, layouts: Layouts) -> Iterator[tuple[Callable[[], Block], Scan]]:
    """The same, from the first of several blocks on."""
    from concurrent.futures import ThreadPoolExecutor

    from lossbisect.parsers.workers import workers_for

    with ExitStack() as stack:
        workers = workers_for(reader)
        if workers:
            stack.enter_context(workers)
        pool = stack.enter_context(ThreadPoolExecutor(_THREADS))

        def here(block: Block) -> _Piece:
            return _Piece(lambda _: block, pool.submit(scan, block, layouts), is_relative=False)

        pieces = _pieces(first, reader, here, workers)
        n_ahead = workers.count + 1 if workers else _THREADS
        queue: deque[_Piece] = deque()
        line_no = 1
        while True:
            while len(queue) < n_ahead and (piece := next(pieces, None)):
                queue.append(piece)
            if not queue:
                break
            piece = queue.popleft()
            result = piece.scan.result()
            if piece.is_relative:
                result = result.moved_by(line_no)
            block = partial(piece.block, line_no)
            line_no = result.next_line_no
            if result.keep_from is not None:
                carried = block().carried_into(queue.popleft().block(line_no), result.keep_from)
                queue.appendleft(here(carried))
            yield block, result
    if workers:
        _give_back_memory()


def _give_back_memory() -> None:
    """Return what scanning has freed to the system, where the C library can (glibc): the table's making needs some."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _pieces(
    first: Block, reader: BlockReader, here: Callable[[Block], _Piece], workers: "Workers | None"
) -> Iterator[_Piece]:
    count = 1
    yield here(first)
    while (count < HEAD_BLOCKS or workers is None) and (block := reader.read()):
        count += 1
        yield here(block)
    if workers:
        for start, stop in workers.spans(reader.n_bytes):
            yield _Piece(partial(workers.block, start, stop), workers.submit(start, stop), is_relative=True)
