"""Why a run failed, and what is to blame: the run itself, the infrastructure, or nobody knows."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from lossbisect.cause import Cause

__all__ = ["Cause", "RunFailure", "failure_in", "failure_of", "last_error"]

_RANK = re.compile(r"^(?:\[[^\]]*\]:?\s?)*")
_WARNING = re.compile(r"^(?:\[(?:rank|default)?\d+\]:?\s?)*\[W(?:\d{3,4})? ")
_LAUNCHER = "ChildFailedError"
"""torch.distributed.run's own error, which only says that a rank failed."""
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)")
_SENTENCE = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFailure:
    """Why a run failed.

    Attributes:
        text: The line of its console that says it best, or a sentence of ours, at most 300 characters.
        kind: Its name in `lossbisect.parsers.failures.FAILURE_KINDS`, ``traceback`` or ``exit``.
        cause: What is to blame.
    """

    text: str
    kind: str
    cause: Cause


def failure_of(console: Path, exit_code: int | None) -> RunFailure:
    """Why a run failed that left this console and exit code (negative: killed by that signal; None: none is known)."""
    try:
        text = console.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = failure_in(text)
    killed = f"killed by {signal.Signals(-exit_code).name}" if exit_code is not None and exit_code < 0 else None
    if found is not None and not (killed and found.kind == "signal"):
        return found
    if killed:
        return RunFailure(text=killed, kind="signal", cause=Cause.UNKNOWN)
    return RunFailure(
        text=f"exit code {exit_code}, without a Python error", kind="exit", cause=Cause.UNKNOWN
    )  # fmt: skip


def failure_in(console: str) -> RunFailure | None:
    """What a failed run's console says of its end; None if it says nothing.

    One failure has many witnesses: a rank that dies makes the others lose their connections. So what kills a machine
    is to blame before all else, then an exception of the run's own, and only then what the others report.
    """
    from lossbisect.parsers.failures import kind_of

    lines = [_RANK.sub("", line, count=1) for line in console.splitlines() if not _WARNING.match(line)]
    told = [(kind, line.strip()[:_SENTENCE]) for line in lines if (kind := kind_of(line)) is not None]
    roots = [(kind, line) for kind, line in told if not kind.is_symptom]
    for kind, line in roots:
        if kind.cause is Cause.INFRASTRUCTURE:
            return RunFailure(text=line, kind=kind.name, cause=kind.cause)
    own = [error for error in _errors(lines) if kind_of(error) is None]
    if own and not roots:
        return RunFailure(text=own[-1], kind="traceback", cause=Cause.OWN)
    for kind, line in reversed(roots):
        return RunFailure(text=last_error(console) or line, kind=kind.name, cause=kind.cause)
    for kind, line in told:
        if kind.cause is Cause.INFRASTRUCTURE:
            return RunFailure(text=line, kind=kind.name, cause=kind.cause)
    for kind, line in told:
        return RunFailure(text=line, kind=kind.name, cause=kind.cause)
    return None


def last_error(console: str) -> str | None:
    """The message line of the last traceback, without rank prefixes, at most 300 characters; None if there is none."""
    errors = _errors([_RANK.sub("", line, count=1) for line in console.splitlines()])
    return errors[-1] if errors else None


def _errors(lines: list[str]) -> list[str]:
    """The message line of each traceback, those of launchers left out."""
    found = []
    in_traceback = False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            in_traceback = True
        elif in_traceback and _EXCEPTION.match(line) and _LAUNCHER not in line:
            found.append(line.strip()[:_SENTENCE])
            in_traceback = False
    return found
