"""A triage as text and JSON."""

import json
from dataclasses import asdict

from lossbisect.bisect.types import CommitInfo
from lossbisect.compare.wording import counted
from lossbisect.report.json import without_nan
from lossbisect.report.plain import printable
from lossbisect.triage.types import Axis, CaseReport, Kind, TriageReport

__all__ = [
    "SCHEMA_VERSION",
    "ack_command",
    "blamed_bridge",
    "case_name",
    "case_text",
    "headline",
    "triage_json",
    "triage_text",
    "worst",
]

SCHEMA_VERSION = 1
_WORST = (
    Kind.REGRESSION,
    Kind.IMPROVEMENT,
    Kind.BROKEN,
    Kind.FLAKY,
    Kind.UNDECIDED,
    Kind.ENVIRONMENT,
    Kind.ACKNOWLEDGED,
    Kind.OK,
)


def worst(report: TriageReport) -> Kind:
    """The kind that a reader has to know first."""
    kinds = {case.kind for case in report.cases}
    return next(kind for kind in _WORST if kind in kinds)


def headline(report: TriageReport) -> str:
    """The first line: the kind, the commit, and of how many trainings."""
    kind = worst(report)
    count = sum(case.kind is kind for case in report.cases)
    of = f" ({count} of {counted(len(report.cases), 'training')})" if len(report.cases) > 1 else ""
    known = "" if report.is_news or kind in (Kind.OK, Kind.ACKNOWLEDGED) else ", reported before"
    whose = "Bridge " if report.newest is report.bridge else ""
    return f"{kind.upper()}{known}: {whose}{report.newest.short} {report.newest.subject}{of}"


def triage_text(report: TriageReport) -> str:
    """Several lines without colour and without a final newline; the first one is the headline."""
    blocks = [headline(report), *("\n".join(_lines(case)) for case in report.cases)]
    return printable("\n\n".join(blocks))


def case_name(case: CaseReport) -> str:
    """Recipe, trainer and lane in a few words."""
    recipe = case.case.recipe.rsplit("/", 1)[-1].removesuffix(".toml")
    return f"{recipe} ({case.trainer}, {case.case.lane})"


def case_text(case: CaseReport) -> str:
    """What is said of one training, several lines, of which a terminal obeys none."""
    return printable("\n".join(_lines(case)))


def ack_command(case: CaseReport) -> str | None:
    """The command that says that a new change is meant; None where there is nothing to acknowledge."""
    if not case.is_news or case.kind not in (Kind.REGRESSION, Kind.IMPROVEMENT) or not case.blame:
        return None
    name = case.blame.commits[-1].short
    return f"lossbisect ack {'bridge:' if blamed_bridge(case) else ''}{name} --reason '...'"


def blamed_bridge(case: CaseReport) -> bool:
    """The blame is on commits of Bridge."""
    return case.blame is not None and case.blame.axis is Axis.BRIDGE


def _who(commit: CommitInfo) -> str:
    return f"{commit.short} {commit.subject} ({commit.author})"


def _lines(case: CaseReport) -> list[str]:
    lines = [f"{case_name(case)}: {case.kind}", f"  {case.reason}"]
    if case.reference is not None and case.reference != case.point:
        lines.append(f"  compared with  {case.reference.short}")
    if case.blame is not None:
        label = "commit" if case.blame.is_confirmed else "one of"
        whose = "Bridge " if blamed_bridge(case) else ""
        lines += [f"  {label:<13}  {whose}{_who(commit)}" for commit in case.blame.commits]
        lines.append(f"  {'known by':<13}  {case.blame.reason}")
    if case.acknowledgement is not None:
        lines.append(f"  acknowledged   by {case.acknowledgement.by}: {case.acknowledgement.reason}")
    if case.case.owners:
        lines.append(f"  owners         {' '.join(case.case.owners)}")
    if (command := ack_command(case)) is not None:
        lines.append(f"  if it's meant  {command}")
    lines += [f"  note           {note}" for note in case.notes]
    return [*lines, f"  {counted(case.runs, 'run')}"]


def triage_json(report: TriageReport) -> str:
    """One object, indented, without a final newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "kind": worst(report).value,
        "is_news": report.is_news,
        "exit_code": report.exit_code,
        "repository": report.repository,
        "commit": asdict(report.commit),
        "bridge_commit": report.point.bridge,
        "is_bridges_commit": report.is_bridges,
        "cases": [asdict(case) for case in report.cases],
    }
    return json.dumps(without_nan(told), indent=2, allow_nan=False, ensure_ascii=False, default=str)
