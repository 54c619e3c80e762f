"""Evaluation lines: ``validation loss at iteration 10 on validation set | lm loss value: … | lm loss PPL: … |``."""

import re

from lossbisect.parsers.events import Evaluation
from lossbisect.schema import column_name

__all__ = ["EVALUATION_NEEDLES", "find_evaluations"]

EVALUATION_NEEDLES = ("loss at ", "validation results at ")
"""Text of which every evaluation line has one."""

_START = r"validation(?:-(?P<name>[^|\n]{1,80}?))? (?:loss|results) at (?P<where>[^|]{1,120}?)\s*\|"
_ITERATION = r"iteration (\d{1,12})\b"
_IS_TEST = r"\btest (?:set|data)$"
_METRIC = r"\s*(?P<metric>[A-Za-z][\w /().-]{0,60}?)(?: value)?:"
_FIELD = rf"{_METRIC} (?P<value>[-+]?(?:\d+(?:\.\d*)?(?:E[-+]?\d+)?|nan|inf))\s*"


def find_evaluations(text: str, line_no: int) -> list[Evaluation]:
    """Every evaluation of a line.

    A perplexity isn't a loss of its own (it is ``exp(min(20, loss))``) and is left out.
    """
    starts = list(re.finditer(_START, text))
    found: list[Evaluation] = []
    for index, start in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        values = _values(text[start.end() : end])
        if not values:
            continue
        iteration = re.search(_ITERATION, start["where"], re.ASCII)
        split = "test" if re.search(_IS_TEST, start["where"]) else "validation"
        found.append(
            Evaluation(
                line_no=line_no,
                iteration=int(iteration[1]) if iteration else None,
                split=f"{split}-{start['name']}" if start["name"] else split,
                values=values,
            )
        )
    return found


def _values(rest: str) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    *closed, tail = rest.split("|")
    for piece in closed:
        match = re.fullmatch(_FIELD, piece, re.ASCII | re.IGNORECASE)
        if match is None:
            break  # another writer's text starts here
        if not _is_perplexity(match["metric"]):
            values[column_name(match["metric"])] = float(match["value"])
    else:
        cut = re.match(_METRIC, tail, re.ASCII)
        if cut and not _is_perplexity(cut["metric"]):
            values[column_name(cut["metric"])] = None
    return values


def _is_perplexity(metric: str) -> bool:
    return metric.lower().endswith("ppl")
