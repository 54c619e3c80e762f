"""The page of a triage: what the newest commit did, and whose commit it was. Also its Markdown."""

from lossbisect.bisect.types import CommitInfo
from lossbisect.report.html.model import Block, Bullets, Code, Facts, Inline, Link, Mark, Page, Section, Table, Tone
from lossbisect.report.triage import ack_command, case_name, worst
from lossbisect.triage.types import CaseReport, Kind, TriageReport

__all__ = ["triage_page"]

_TONES = {
    Kind.OK: Tone.GOOD,
    Kind.REGRESSION: Tone.BAD,
    Kind.IMPROVEMENT: Tone.BAD,
    Kind.BROKEN: Tone.BAD,
    Kind.ACKNOWLEDGED: Tone.NEUTRAL,
    Kind.ENVIRONMENT: Tone.NEUTRAL,
}


def triage_page(report: TriageReport) -> Page:
    """The page: a table of all trainings, then one section for each that has something to tell."""
    kind = worst(report)
    commit = report.commit
    facts: list[tuple[str, Inline]] = [
        ("commit", _linked(commit, report)),
        ("subject", commit.subject),
        ("author", commit.author),
        ("date", commit.date),
    ]
    if report.point.bridge:
        facts.append(("Bridge", report.point.bridge))
    rows: list[list[Inline]] = [[case_name(case), _mark(case.kind), case.reason] for case in report.cases]
    table = Table(head=["training", "outcome", "why"], rows=rows)
    sections = [Section(title="Commit", blocks=[Facts(facts)]), Section(title="Trainings", blocks=[table])]
    sections += [_section(case, report) for case in report.cases if case.kind is not Kind.OK]
    return Page(
        kind="triage",
        title=f"{kind} at {commit.short}",
        verdict=Mark(kind.upper(), _TONES.get(kind, Tone.UNSURE)),
        reason=f"{commit.short} {commit.subject}",
        sections=sections,
    )


def _section(case: CaseReport, report: TriageReport) -> Section:
    blocks: list[Block] = []
    if case.reference is not None:
        blocks.append(Facts([("compared with", case.reference.short), ("runs", str(case.runs))]))
    if case.blame is not None:
        rows: list[list[Inline]] = [
            [_linked(commit, report), commit.subject, commit.author, commit.pull_request or ""]
            for commit in case.blame.commits
        ]
        known = "confirmed" if case.blame.is_confirmed else "candidates"
        blocks.append(Table(head=[f"commit ({known})", "subject", "author", "pull request"], rows=rows))
        blocks.append(Facts([("where", case.blame.axis.value), ("how it is known", case.blame.reason)]))
    if case.acknowledgement is not None:
        blocks.append(Facts([("acknowledged by", case.acknowledgement.by), ("reason", case.acknowledgement.reason)]))
    if case.case.owners:
        blocks.append(Facts([("owners", " ".join(case.case.owners))]))
    if case.notes:
        blocks.append(Bullets(case.notes))
    if (command := ack_command(case)) is not None:
        blocks.append(Code(command))
    return Section(title=f"{case_name(case)}: {case.kind}", blocks=blocks)


def _mark(kind: Kind) -> Mark:
    return Mark(kind.value, _TONES.get(kind, Tone.UNSURE))


def _linked(commit: CommitInfo, report: TriageReport) -> Inline:
    if report.repository is None:
        return commit.sha
    return Link(commit.sha, f"https://github.com/{report.repository}/commit/{commit.sha}")
