"""What ends a run that doesn't end by itself: the search for the kinds of `failure_kinds`."""

import re
from collections.abc import Iterable

from lossbisect.parsers.failure_kinds import FAILURE_KINDS, Kind
from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.runlog import Failure
from lossbisect.parsers.source import Block, Line

__all__ = ["FAILURE_NEEDLES", "find_failure", "kind_of", "worse"]

_WARNING = re.compile(r"\s*\[W(?:\d{3,4})? ")
"""How torch begins a warning; at the end of a good run it warns of connections that others have closed."""
_TRACEBACK = "Traceback (most recent call last):"
FAILURE_NEEDLES = (*sorted({needle for kind in FAILURE_KINDS for needle in kind.needles}), _TRACEBACK)
"""Text of which every line that tells a failure has one."""

_EXCEPTION = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?")
_LONGEST_TRACEBACK = 400
_LONGEST_TEXT = 500


def find_failure(block: Block, offsets: Iterable[int]) -> Failure | None:
    """The likeliest cause of an end: the first line of the first kind in the table.

    Args:
        block: The block.
        offsets: Where a needle of failures stands, rising, in the part of the block where the run can have ended.
    """
    best: tuple[int, Line, str] | None = None
    last_end = -1
    for offset in offsets:
        if offset < last_end:
            continue
        line = block.line_at(offset)
        last_end = line.end
        text = peel(line.text)[0]
        rank = _rank_of_line(text)
        if rank is not None and (best is None or rank < best[0]):
            best = rank, line, text
            if rank == 0:
                break
    if best is None:
        return None
    rank, line, text = best
    if rank == len(FAILURE_KINDS):
        return _traceback(block, line)
    return Failure(kind=FAILURE_KINDS[rank].name, line_no=line.no, text=text.strip()[:_LONGEST_TEXT])


def kind_of(text: str) -> Kind | None:
    """The kind that a line without its prefix tells; None for one that tells none, only names one, or only warns."""
    if _is_source(text) or _WARNING.match(text):
        return None
    return next((kind for kind in FAILURE_KINDS if re.search(kind.pattern, text)), None)


def _rank_of_line(text: str) -> int | None:
    """The place in the table of what a line says."""
    if text.strip() == _TRACEBACK:
        return len(FAILURE_KINDS)
    kind = kind_of(text)
    return None if kind is None else FAILURE_KINDS.index(kind)


def worse(first: Failure | None, second: Failure | None) -> Failure | None:
    """The likelier cause of two found one after the other; of the same kind, the first."""
    if first is None or second is None:
        return first or second
    return second if _rank(second) < _rank(first) else first


def _rank(failure: Failure) -> int:
    names = [kind.name for kind in FAILURE_KINDS]
    return names.index(failure.kind) if failure.kind in names else len(names)


def _is_source(text: str) -> bool:
    """Whether a line only names a failure: code shown by a traceback, or a configuration's text."""
    return text.lstrip().startswith(("raise ", "except ", "File ", "import ", "from "))


def _traceback(block: Block, first: Line) -> Failure:
    """A traceback, told by its exception's line if that is found before the text ends."""
    line: Line | None = first
    for _ in range(_LONGEST_TRACEBACK):
        line = block.next_line(line) if line else None
        if line is None:
            break
        text = peel(line.text)[0]
        if _EXCEPTION.fullmatch(text):
            return Failure(kind="traceback", line_no=line.no, text=text.strip()[:_LONGEST_TEXT])
    return Failure(kind="traceback", line_no=first.no, text=peel(first.text)[0].strip())
