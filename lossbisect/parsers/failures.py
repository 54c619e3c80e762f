"""What ends a run that doesn't end by itself: a table of named kinds, and the search for them."""

import re
from dataclasses import dataclass

from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.runlog import Failure
from lossbisect.parsers.source import Block, Line

__all__ = ["FAILURE_KINDS", "Kind", "find_failure", "worse"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to fail.

    Attributes:
        name: Stable name.
        needles: Bytes of which every line of this kind has one; they keep the search fast.
        pattern: What such a line says.
    """

    name: str
    needles: tuple[bytes, ...]
    pattern: re.Pattern[str]


def _kind(name: str, needles: tuple[bytes, ...], pattern: str) -> Kind:
    return Kind(name, needles, re.compile(pattern))


FAILURE_KINDS: tuple[Kind, ...] = (
    _kind("cuda-oom", (b"out of memory", b"OutOfMemoryError"), r"(?:CUDA|HIP|NPU) out of memory|OutOfMemoryError:"),
    _kind("host-oom", (b"oom",), r"oom[-_]kill"),
    _kind(
        "nan",
        (b"found NaN in local", b"found Inf in local", b"Unexpected result "),
        r"Unexpected result (?:nan|inf)\b|found (?:NaN|Inf) in local",
    ),
    _kind("rerun-state-machine", (b"Unexpected result ",), r"Unexpected result \S+ (?:on rank|\(message)"),
    _kind("import-error", (b"ModuleNotFoundError:", b"ImportError:"), r"^\s*(?:ModuleNotFoundError|ImportError):"),
    _kind("time-limit", (b"TIME LIMIT",), r"DUE TO TIME LIMIT"),
    _kind("cuda-error", (b"CUDA error",), r"CUDA error:|CUDA error \d|device-side assert"),
    _kind(
        "nccl",
        (b"NCCL", b"nccl"),
        r"NCCL [Ee]rror|nccl(?:System|Internal|Remote|UnhandledCuda|InvalidUsage)Error|DistBackendError"
        r"|Watchdog caught collective operation timeout",
    ),
    _kind(
        "signal",
        (
            b"SIG",
            b" death signal",
            b"Segmentation fault",
            b"Bus error",
            b": Killed",
            b": Terminated",
            b"exitcode",
            b"CANCELLED",
        ),
        r"Segmentation fault|Bus error|Received (?:SIG[A-Z]+|\d+) death signal|Signal \d+ \(SIG[A-Z]+\)"
        r"|received SIG[A-Z]+|exitcode\s*: -\d+|task \d+: (?:Killed|Terminated)|CANCELLED AT",
    ),
)
"""Kinds with a name of their own, the likelier cause first; a ``traceback`` that is none of them comes last."""

_TRACEBACK = b"Traceback (most recent call last):"
_EXCEPTION = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::.*)?")
_LONGEST_TRACEBACK = 400
_LONGEST_TEXT = 500


def find_failure(block: Block, start: int, end: int) -> Failure | None:
    """The likeliest cause of an end within a stretch of a block: the first line of the first kind in the table."""
    if start >= end:
        return None
    for kind in FAILURE_KINDS:
        offsets = (offset for needle in kind.needles for offset in _find_all(block.data, needle, start, end))
        for offset in sorted(offsets):
            line = block.line_at(offset)
            text = peel(line.text)[0]
            if kind.pattern.search(text) and not _is_source(text):
                return Failure(kind=kind.name, line_no=line.no, text=text.strip()[:_LONGEST_TEXT])
    for offset in _find_all(block.data, _TRACEBACK, start, end):
        line = block.line_at(offset)
        if peel(line.text)[0].strip() == _TRACEBACK.decode():
            return _traceback(block, line)
    return None


def worse(first: Failure | None, second: Failure | None) -> Failure | None:
    """The likelier cause of two found one after the other; of the same kind, the first."""
    if first is None or second is None:
        return first or second
    return second if _rank(second) < _rank(first) else first


def _rank(failure: Failure) -> int:
    names = [kind.name for kind in FAILURE_KINDS]
    return names.index(failure.kind) if failure.kind in names else len(names)


def _find_all(data: bytes, needle: bytes, start: int, end: int) -> list[int]:
    offsets = []
    offset = data.find(needle, start, end)
    while offset >= 0:
        offsets.append(offset)
        offset = data.find(needle, offset + len(needle), end)
    return offsets


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
