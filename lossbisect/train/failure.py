"""Which error ended a run: the last Python exception in its console."""

import re

__all__ = ["last_error"]

_RANK = re.compile(r"^(?:\[[^\]]*\]:?\s?)*")
_LAUNCHER = "ChildFailedError"
"""torch.distributed.run's own error, which only says that a rank failed."""
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)")


def last_error(console: str) -> str | None:
    """The message line of the last traceback, without rank prefixes, at most 300 characters; None if there is none."""
    lines = [_RANK.sub("", line, count=1) for line in console.splitlines()]
    found = None
    in_traceback = False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            in_traceback = True
        elif in_traceback and _EXCEPTION.match(line) and _LAUNCHER not in line:
            found, in_traceback = line.strip()[:300], False
    return found
