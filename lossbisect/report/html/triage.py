"""The page of a triage: what the newest commit did, and whose commit it was. Also its Markdown."""

from urllib.parse import quote

from lossbisect.bisect.types import CommitInfo
from lossbisect.report.html.charts import two_curves_data
from lossbisect.report.html.history import KIND_TONES
from lossbisect.report.html.model import (
    Block,
    Bullets,
    Charts,
    Code,
    Facts,
    Inline,
    Link,
    Mark,
    Page,
    Section,
    Table,
    Tone,
)
from lossbisect.report.triage import ack_command, blamed_bridge, case_name, worst
from lossbisect.triage.classify import REAL_FACTOR, distance
from lossbisect.triage.types import CaseReport, Kind, TriageReport

__all__ = ["triage_page"]


def triage_page(report: TriageReport, *, is_site: bool = False, is_whole: bool = True) -> Page:
    """The page: a table of all trainings, then one section for each that has something to tell.

    Args:
        report: What was said.
        is_site: It stands on a site, where a bisect has a page of its own.
        is_whole: Trainings that are ok have a section too, with their curves.
    """
    kind = worst(report)
    newest = report.newest
    sides: list[tuple[str, CommitInfo, str | None]] = [("Megatron-LM", report.commit, report.repository)]
    if report.bridge is not None:
        sides.append(("Megatron Bridge", report.bridge, report.bridge_repository))
    facts: list[tuple[str, Inline]] = []
    for side, commit, repository in sorted(sides, key=lambda each: each[1] is not newest):
        facts += [(side, _linked(commit, repository)), ("subject", commit.subject)]
        facts.append(("author, date", f"{commit.author}, {commit.date}"))
    if report.at is not None:
        facts.append(("triaged", f"{report.at:%Y-%m-%d %H:%M} UTC"))
    rows: list[list[Inline]] = [[case_name(case), _mark(case.kind), case.reason] for case in report.cases]
    table = Table(head=["training", "outcome", "why"], rows=rows)
    sections = [Section(title="Commit", blocks=[Facts(facts)]), Section(title="Trainings", blocks=[table])]
    sections += [
        _section(case, report, is_site=is_site) for case in report.cases if is_whole or case.kind is not Kind.OK
    ]
    return Page(
        kind="triage",
        title=f"{kind} at {newest.short}",
        verdict=Mark(kind.upper(), KIND_TONES.get(kind, Tone.UNSURE)),
        reason=f"{'Bridge ' if newest is report.bridge else ''}{newest.short} {newest.subject}",
        sections=sections,
    )


def _section(case: CaseReport, report: TriageReport, *, is_site: bool) -> Section:
    blocks: list[Block] = []
    if case.reference is not None:
        blocks.append(Facts([("compared with", case.reference.short), ("runs", str(case.runs))]))
    if case.blame is not None:
        repository = report.bridge_repository if blamed_bridge(case) else report.repository
        rows: list[list[Inline]] = [
            [_linked(commit, repository), commit.subject, commit.author, commit.pull_request or ""]
            for commit in case.blame.commits
        ]
        known = "confirmed" if case.blame.is_confirmed else "candidates"
        blocks.append(Table(head=[f"commit ({known})", "subject", "author", "pull request"], rows=rows))
        facts: list[tuple[str, Inline]] = [
            ("where", case.blame.axis.value),
            ("how it is known", case.blame.reason),
        ]
        if case.blame.bisect_id is not None:
            address = f"/bisects/{case.blame.bisect_id}"
            facts.append(("bisect", Link(case.blame.bisect_id, address) if is_site else case.blame.bisect_id))
        blocks.append(Facts(facts))
    if case.acknowledgement is not None:
        blocks.append(Facts([("acknowledged by", case.acknowledgement.by), ("reason", case.acknowledgement.reason)]))
    if case.case.owners:
        blocks.append(Facts([("owners", " ".join(case.case.owners))]))
    if case.notes:
        blocks.append(Bullets(case.notes))
    if (command := ack_command(case)) is not None:
        blocks.append(Code(command))
    if case.curve and case.reference_curve:
        blocks.append(_curves(case))
    return Section(title=f"{case_name(case)}: {case.kind}", blocks=blocks)


def _curves(case: CaseReport) -> Charts:
    noise = max(case.noise_rel, case.case.tolerance)
    is_moved = case.kind in (Kind.REGRESSION, Kind.IMPROVEMENT, Kind.ACKNOWLEDGED)
    before = f"{case.reference.short[:10]} before" if case.reference else "before"
    data = two_curves_data(
        case.reference_curve,
        case.curve,
        names=(before, f"{case.point.short[:10]} now"),
        metric=case.case.metric,
        noise_rel=noise,
        real_rel=REAL_FACTOR * noise,
        onset=distance(case.reference_curve, case.curve).since if is_moved else None,
    )
    return Charts(data)


def _mark(kind: Kind) -> Mark:
    return Mark(kind.value, KIND_TONES.get(kind, Tone.UNSURE))


def _linked(commit: CommitInfo, repository: str | None) -> Inline:
    if repository is None:
        return commit.sha
    return Link(commit.sha, f"https://github.com/{quote(repository)}/commit/{quote(commit.sha)}")
