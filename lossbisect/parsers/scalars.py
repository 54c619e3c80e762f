"""Our own full-precision scalars: one JSON object a line, ``{"tag": "lm loss", "iteration": 1, "value": 10.377}``.

A value of null says in ``nonfinite`` what it stands for: ``nan``, ``inf`` or ``-inf``.
"""

import json
from pathlib import Path

from lossbisect.errors import ParseError
from lossbisect.parsers.pointwise import Points
from lossbisect.parsers.records import data_column
from lossbisect.parsers.runlog import RunLog
from lossbisect.parsers.source import Block, BlockReader

__all__ = ["read_scalars"]

_NONFINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def read_scalars(reader: BlockReader, path: Path) -> RunLog:
    """The run of a scalars file.

    Raises:
        ParseError: A line other than the last isn't such an object.
    """
    points = Points(path, "lossbisect", "its lines are objects with 'tag' and 'iteration'")
    while (block := reader.read()) is not None:
        _add_block(block, path, points)
    return points.log()


def _add_block(block: Block, path: Path, points: Points) -> None:
    lines = block.data.split(b"\n")
    for line_no, line in enumerate(lines, start=block.line_no):
        text = line.strip()
        if not text:
            continue
        try:
            tag, iteration, value = _scalar(text)
        except ValueError as error:
            if block.is_last and line_no == block.line_no + len(lines) - 1:
                # No line end follows: the writer was killed in mid-line.
                points.note(line_no, "cut-row", "The last line was cut; it was left out.")
                return
            raise ParseError(
                f"{path}:{line_no}: {error}. Each line must be an object like "
                '{"tag": "lm loss", "iteration": 1, "value": 10.4}.'
            ) from None
        points.add(tag, iteration, value, line_no)


def _scalar(text: bytes) -> tuple[str, int, float]:
    try:
        item = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(item, dict):
        raise ValueError("not a JSON object")
    tag, iteration, value = item.get("tag"), item.get("iteration"), item.get("value")
    if not isinstance(tag, str) or not data_column(tag):
        raise ValueError("'tag' is missing or no text")
    if not isinstance(iteration, int) or isinstance(iteration, bool) or not -(2**63) <= iteration < 2**63:
        raise ValueError("'iteration' is missing or no whole number")
    if value is None:
        value = _NONFINITE.get(str(item.get("nonfinite", "nan")))
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("'value' is missing or no number")
    try:
        return tag, iteration, float(value)
    except OverflowError:
        raise ValueError("'value' is too large") from None
