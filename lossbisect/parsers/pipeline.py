"""Blocks scanned ahead while earlier ones are used."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from lossbisect.parsers.scan import Scan, scan
from lossbisect.parsers.source import Block, BlockReader

__all__ = ["scans"]

_WORKERS = 2
_AHEAD = 2


def scans(reader: BlockReader) -> Iterator[tuple[Block, Scan]]:
    """Every block of a log and what it holds, in order.

    A block is scanned on the guess that the one before it ends with whole rows, as nearly all do; where it doesn't,
    what is left of that one is carried into it and it is scanned again.
    """
    first = reader.read()
    if first is None or first.is_last:
        if first is not None:
            yield first, scan(first)
        return
    queue: deque[tuple[Block, Future[Scan]]] = deque()
    with ThreadPoolExecutor(_WORKERS) as pool:
        queue.append((first, pool.submit(scan, first)))
        while True:
            while len(queue) < _AHEAD and (read := reader.read()) is not None:
                queue.append((read, pool.submit(scan, read)))
            if not queue:
                return
            block, future = queue.popleft()
            result = future.result()
            if result.keep_from is not None:
                following, _ = queue.popleft()
                carried = block.carried_into(following, result.keep_from)
                queue.appendleft((carried, pool.submit(scan, carried)))
            yield block, result
