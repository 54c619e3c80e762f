"""What a check has to say."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Family", "Finding", "Severity", "worst"]


class Severity(StrEnum):
    """How much a finding matters, the least first."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing needs to be done."""
    WARNING = "warning"
    """Results may be other than they seem."""
    PROBLEM = "problem"
    """A run fails, or runs something else than it seems to."""


class Family(StrEnum):
    """What a check looks at, in the order of a report."""

    CHECKOUT = "checkout"
    EXPERIMENTS = "experiments"
    IMPORTS = "imports"
    VERSIONS = "versions"
    MACHINE = "machine"
    VARIABLES = "variables"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: Stable name, such as ``submodule-behind``.
        family: What it looks at.
        severity: How much it matters.
        where: The folder, file, variable or program that it is about.
        what: What was found, in a sentence without a final full stop.
        remedy: The exact command that mends it, to be pasted into a shell; None where no command does.
        advice: What to do where no command does, or what to know before the command is used; may be empty.
    """

    check: str
    family: Family
    severity: Severity
    where: str
    what: str
    remedy: str | None = None
    advice: str = ""


def worst(findings: Iterable[Finding]) -> Severity:
    """The highest severity among the findings; ``OK`` where there are none."""
    ranks = list(Severity)
    return max((finding.severity for finding in findings), key=ranks.index, default=Severity.OK)
