"""A block of bytes to events.

`scan` is a pure function of one block. One pass looks for a few byte strings; only the lines that hold one are
touched, so the cost of a log is that of its rows, not of what other ranks and libraries wrote between them.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from lossbisect.parsers.config_dump import Dump, parse_arguments, parse_summary, parse_yaml
from lossbisect.parsers.events import Config, Event, Finish, Rows, Stage, Start, StepTime, Version
from lossbisect.parsers.failures import FAILURE_NEEDLES, find_failure
from lossbisect.parsers.marks import MARK_FINDERS, TIMER_NEEDLES, find_checkpoints, find_timings
from lossbisect.parsers.needles import find_needles
from lossbisect.parsers.prefixes import peel
from lossbisect.parsers.rowscan import ROW_NEEDLES, Layouts, Run, find_rows
from lossbisect.parsers.runlog import Checkpoint, Memory, Timing
from lossbisect.parsers.source import Block, Line
from lossbisect.parsers.validation import EVALUATION_NEEDLES, find_evaluations

__all__ = ["NEEDLES", "Scan", "scan"]

_LONGEST_DUMP = 2 << 20
_MOST_TIMER_REPORTS = 64
_STEP_NEEDLE = "Step Time : "
_STEP_TIME = re.compile(rb"Step Time : (\d{1,9}\.\d{1,4})s GPU utilization: (\d{1,9}\.\d{1,4})(?:MODEL_)?TFLOP/s/GPU")


class Scan(NamedTuple):
    """What a block holds.

    Attributes:
        events: In file order.
        checkpoints: In file order.
        memory: In file order.
        timings: In file order, of the first reports only.
        step_times: In file order.
        keep_from: Where the next block must start again because something here isn't whole yet, or None.
        next_line_no: 1-based physical line of what follows the block.
    """

    events: list[Event]
    checkpoints: list[Checkpoint]
    memory: list[Memory]
    timings: list[Timing]
    step_times: list[StepTime]
    keep_from: int | None
    next_line_no: int

    def moved_by(self, n_lines: int) -> "Scan":
        """The same with lines counted from another start."""

        def moved[T: (Event, Checkpoint, Memory, Timing, StepTime)](items: list[T]) -> list[T]:
            return [
                replace(item, line_nos=item.line_nos + n_lines)
                if isinstance(item, Rows)
                else item._replace(line_no=item.line_no + n_lines)
                for item in items
            ]

        return Scan(
            events=moved(self.events),
            checkpoints=moved(self.checkpoints),
            memory=moved(self.memory),
            timings=moved(self.timings),
            step_times=moved(self.step_times),
            keep_from=self.keep_from,
            next_line_no=self.next_line_no + n_lines,
        )


def scan(block: Block, layouts: Layouts) -> Scan:
    """Every event of a block. The shapes of rows that are known only make it faster."""
    import numpy as np

    hits = find_needles(block.data, NEEDLES)
    first_bytes = np.frombuffer(block.data, np.uint8)[hits]
    is_row = first_bytes == ord(ROW_NEEDLES[0][0])
    is_timer = np.isin(first_bytes, [ord(needle[0]) for needle in TIMER_NEEDLES])
    runs, end = find_rows(block, hits[is_row], layouts)
    marks: list[tuple[int, Event]] = []
    by_needle = _by_needle(block, hits[~(is_row | is_timer)].tolist())
    for finder in (_evaluations, _marks, _dumps):
        found, unfinished = finder(block, by_needle)
        marks.extend(found)
        end = min(end, unfinished)
    runs = [run for whole in runs if (run := _until(whole, end))]
    marks = sorted((mark for mark in marks if mark[0] < end), key=_offset)
    marks = sorted([*marks, *_failures(block, runs, marks, end)], key=_offset)
    checkpoints, memory = _between_rows(block, by_needle, end)
    timers = [offset for offset in hits[is_timer].tolist() if offset < end][:_MOST_TIMER_REPORTS]
    return Scan(
        events=_in_order(runs, marks),
        checkpoints=checkpoints,
        memory=memory,
        timings=[timing for offset in timers for timing in find_timings(block, offset)],
        step_times=_step_times(block, by_needle, end),
        keep_from=end if end < len(block.data) else None,
        next_line_no=block.next_line_no,
    )


def _between_rows(block: Block, hits: "_Hits", end: int) -> tuple[list[Checkpoint], list[Memory]]:
    found: dict[int, list[Checkpoint | Memory]] = {}
    for needle, finder in MARK_FINDERS:
        for offset in hits[needle]:
            line = block.line_at(offset)
            if offset < end and (finder is not find_checkpoints or line.start not in found):
                found.setdefault(line.start, []).extend(finder(line))
    marks = [mark for start in sorted(found) for mark in found[start]]
    return [mark for mark in marks if isinstance(mark, Checkpoint)], [
        mark for mark in marks if isinstance(mark, Memory)
    ]


def _step_times(block: Block, hits: "_Hits", end: int) -> list[StepTime]:
    found: list[StepTime] = []
    for offset in hits[_STEP_NEEDLE]:
        match = _STEP_TIME.match(block.data, offset)
        if match and offset < end:
            time_ms, throughput = float(match[1]) * 1e3, float(match[2])
            found.append(StepTime(line_no=block.number_at(offset), time_ms=time_ms, throughput_tflops=throughput))
    return found


def _offset(mark: tuple[int, Event]) -> int:
    return mark[0]


def _until(run: Run, end: int) -> Run | None:
    """The part of a run before an offset."""
    if run.offsets[-1] < end:
        return run
    count = int(run.offsets.searchsorted(end))
    return Run(offsets=run.offsets[:count], rows=run.rows.part(0, count)) if count else None


def _in_order(runs: list[Run], marks: list[tuple[int, Event]]) -> list[Event]:
    """Rows and marks as they follow each other in the file."""
    items: list[tuple[int, Event]] = list(marks)
    offsets = [offset for offset, _ in marks]
    for run in runs:
        first, last = int(run.offsets[0]), int(run.offsets[-1])
        inside = offsets[bisect_left(offsets, first) : bisect_left(offsets, last)]
        cuts = run.offsets.searchsorted(inside).tolist()
        for start, stop in pairwise(sorted({0, *cuts, len(run.offsets)})):
            items.append((int(run.offsets[start]), run.rows.part(start, stop)))
    items.sort(key=_offset)
    return [event for _, event in items]


type _Hits = dict[str, list[int]]


def _by_needle(block: Block, offsets: list[int]) -> _Hits:
    """Where each needle stands, rising: one offset a line."""
    found: _Hits = {needle: [] for needle in NEEDLES}
    longest = max(map(len, NEEDLES))
    for offset in offsets:
        text = block.data[offset : offset + longest].decode("latin-1")
        needle = next(needle for needle in NEEDLES if text.startswith(needle))
        before = found[needle]
        if not before or block.data.find(b"\n", before[-1], offset) >= 0:
            before.append(offset)
    return found


type _Found = tuple[list[tuple[int, Event]], int]


def _evaluations(block: Block, hits: _Hits) -> _Found:
    found: list[tuple[int, Event]] = []
    for offset in sorted(offset for needle in EVALUATION_NEEDLES for offset in hits[needle]):
        line = block.line_at(offset)
        found.extend((offset, evaluation) for evaluation in find_evaluations(line.text, line.no))
    return found, len(block.data)


_MARKS: tuple[tuple[str, str, Callable[[Line, re.Match[str]], Event]], ...] = (
    (
        "[before the start of training step]",
        r"\[before the start of training step\]",
        lambda line, _: Start(line_no=line.no, stage=Stage.LOOP),
    ),
    (
        "Starting training loop at ",
        r"Starting training loop at iteration ([0-9]{1,12})",
        lambda line, match: Start(line_no=line.no, stage=Stage.LOOP, iteration=int(match[1])),
    ),
    (
        "[after megatron is initialized]",
        r"\[after megatron is initialized\]",
        lambda line, _: Start(line_no=line.no, stage=Stage.INITIALIZED),
    ),
    (
        "successfully loaded ",
        r"successfully loaded checkpoint .*?\bat iteration ([0-9]{1,12})",
        lambda line, match: Start(line_no=line.no, stage=Stage.LOAD, iteration=int(match[1])),
    ),
    (
        "Megatron-Core version ",
        r"> Megatron-Core version \.+ (\S+)",
        lambda line, match: Version(line_no=line.no, text=match[1]),
    ),
    ("[exiting program ", r"\[exiting program (?:at|after) ", lambda line, _: Finish(line_no=line.no)),
    (
        "[after training is done]",
        r"\[after training is done\]",
        lambda line, _: Finish(line_no=line.no),
    ),
)


def _marks(block: Block, hits: _Hits) -> _Found:
    found: list[tuple[int, Event]] = []
    for needle, pattern, event in _MARKS:
        for offset in hits[needle]:
            line = block.line_at(offset)
            if match := re.search(pattern, line.text):
                found.append((offset, event(line, match)))
    return found, len(block.data)


_DUMPS: tuple[tuple[str, Callable[[Iterable[str]], Dump]], ...] = (
    ("- arguments -", parse_arguments),
    ("arguments:\n", parse_arguments),
    ("_target_: ", parse_yaml),
    ("Configuration Summary (", parse_summary),
)
_ALL_NEEDLES = (
    *ROW_NEEDLES,
    *TIMER_NEEDLES,
    *EVALUATION_NEEDLES,
    *(mark[0] for mark in _MARKS),
    *(dump[0] for dump in _DUMPS),
    *(finder[0] for finder in MARK_FINDERS),
    _STEP_NEEDLE,
)
NEEDLES = tuple(dict.fromkeys(_ALL_NEEDLES))
"""Text of which every line that says something here has one."""

_SECTION_NAME = re.compile(r"\s*[A-Za-z_]\w*:\s*")


def _dumps(block: Block, hits: _Hits) -> _Found:
    found: list[tuple[int, Event]] = []
    for needle, parse in _DUMPS:
        position = 0
        for offset in hits[needle]:
            if offset < position:
                continue
            line = block.line_at(offset)
            text = peel(line.text)[0]
            if needle == "arguments:\n" and text.strip() != "arguments:":
                continue
            if needle == "_target_: " and text.startswith(" ") and line.start:
                # A log that starts in the middle of a dump: the line before names the section.
                above = block.line_at(line.start - 1)
                line = above if _SECTION_NAME.fullmatch(peel(above.text)[0]) else line
            dump = parse(item.text for item in block.lines_from(line.start))
            if not dump.is_closed and not block.is_last and len(block.data) - line.start < _LONGEST_DUMP:
                return found, line.start
            if dump.values:
                found.append((line.start, Config(line_no=line.no, kind=parse.__name__, values=dump.values)))
            for item in islice(block.lines_from(line.start), dump.n_lines):
                position = max(position, item.end)
    return found, len(block.data)


def _failures(block: Block, runs: list[Run], marks: list[tuple[int, Event]], end: int) -> Iterable[tuple[int, Event]]:
    """Failures where a run can have ended: before its restart, and after the block's last row.

    Between two rows of one run nothing can have ended it, so nothing is searched there.
    """
    import numpy as np

    starts = [offset for offset, event in marks if isinstance(event, Start | Config)]
    rows = np.concatenate([np.zeros(1, np.int64), *(run.offsets for run in runs)])
    iterations = np.concatenate([np.zeros(1, np.int64), *(run.rows.iterations for run in runs)])
    falls = rows[1:][np.diff(iterations) <= 0]
    edges = sorted({0, *starts, *rows[1:2].tolist(), *falls.tolist(), end})
    spans = [(max(before, int(rows[rows.searchsorted(edge) - 1])), edge) for before, edge in pairwise(edges)]
    hits = find_needles(block.data, FAILURE_NEEDLES, spans)
    bounds = hits.searchsorted(np.array(spans)).tolist()
    for (since, edge), (first, last) in zip(spans, bounds, strict=True):
        if failure := find_failure(block, hits[first:last].tolist()):
            yield max(since, edge - 1), failure
