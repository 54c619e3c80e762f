"""What launchers, loggers and collectors put in front of a line."""

import re
from functools import cache

__all__ = ["peel"]

_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"

# Each pattern takes one prefix. `label` names the process that wrote the line, where the prefix says so.
_PREFIXES = (
    r"\s*\[(?P<label>[A-Za-z_]+\d+)\]:(?: (?=\S))?",  # torchrun --tee, torch's exception hook
    r"\s*(?P<label>\d{1,6}): ",  # srun -l
    r"(?P<label>[\w.-]+/\d+) (?=\[|\S|\s)",  # nemo-run
    r"\((?P<label>\w+ pid=\d+(?:, ip=[\w.:]+)?)\) ",  # Ray
    rf"{_CLOCK} (?:stdout|stderr) [FP] ",  # CRI
    rf"{_CLOCK}\s",  # GitHub, docker and kubectl with timestamps
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]*:",  # Python's logging
    r"\[NeMo [A-Z] [^\]]*\]\s?",
    rf"\[{_CLOCK}\] \[[A-Z]+\] \[[^\]]*\]\s?",  # DeepSpeed
    r"(?P<label>[\w./-]+\.(?:log|txt|out|err))[:-](?:\d+[:-])?",  # grep -H, grep -n
)
_MOST = 6


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, _PREFIXES))


def peel(text: str) -> tuple[str, str]:
    """A line without its prefixes, and the label of the process that wrote it.

    Prefixes may be stacked (``name/0 [default0]:``), so they are peeled until none is left. A clock that is part of
    the line itself, in brackets, stays.

    Returns:
        The rest of the line, and the labels joined by a blank; no label gives ``""``.

    Example:
        >>> peel("retraining/0 [default0]: iteration 1/9 |")
        ('iteration 1/9 |', 'retraining/0 default0')
    """
    labels: list[str] = []
    for _ in range(_MOST):
        for pattern in _patterns():
            if match := pattern.match(text):
                text = text[match.end() :]
                if label := match.groupdict().get("label"):
                    labels.append(label)
                break
        else:
            break
    return text, " ".join(labels)
