"""The site's own pages: what is new, and lists of histories, triages, bisects and runs, a hundred lines a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from lossbisect.bisect.culprit import Answer, BisectResult
from lossbisect.bisect.recall import Unfinished
from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.report.history import last_loss
from lossbisect.report.html.history import KIND_TONES
from lossbisect.report.html.model import Block, Inline, Link, Mark, Page, Section, Table, Text, Tone
from lossbisect.report.html.run import OUTCOME_TONES
from lossbisect.report.runs import size_text
from lossbisect.report.triage import worst
from lossbisect.report.unfinished import bracket_text
from lossbisect.serve.watch import Glance, Slot
from lossbisect.store.types import StoredRun
from lossbisect.triage.types import Entry, Kind, Series, TriageReport

__all__ = [
    "LINES",
    "BisectLine",
    "Paging",
    "bisects_table",
    "histories_table",
    "list_page",
    "runs_table",
    "triages_table",
]

LINES = 100
"""Lines on a page of a list."""
_ANSWERS = {Answer.FOUND: Tone.BAD, Answer.NO_CULPRIT: Tone.GOOD}


@dataclass(frozen=True, kw_only=True, slots=True)
class Paging:
    """Which part of a list a page shows.

    Attributes:
        path: The list's address.
        number: The page's number, from 1 on.
        count: Lines that there are in all.
        query: What the list is narrowed by.
    """

    path: str
    number: int
    count: int
    query: Mapping[str, str]

    @property
    def skip(self) -> int:
        """Lines before this page."""
        return (self.number - 1) * LINES

    def links(self) -> list[Block]:
        """What leads to the pages beside it; nothing where one page holds all."""
        last = max(1, -(-self.count // LINES))
        if last == 1:
            return []
        blocks: list[Block] = [
            Text(f"Page {self.number} of {last:,}: {self.skip + 1:,} to {min(self.count, self.skip + LINES):,}.")
        ]
        if self.number > 1:
            blocks.append(Text(Link("Newer", self._at(self.number - 1))))
        if self.number < last:
            blocks.append(Text(Link("Older", self._at(self.number + 1))))
            blocks.append(Text(Link("Oldest", self._at(last))))
        return blocks

    def _at(self, number: int) -> str:
        return f"{self.path}?{urlencode({**self.query, 'page': number}, quote_via=quote)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectLine:
    """One bisect in a list.

    Attributes:
        glance: How it stands.
        is_running: A process works on it.
        answer: What it says; None: not looked up yet.
        slots: What runs now.
    """

    glance: Glance
    is_running: bool
    answer: BisectResult | Unfinished | str | None
    slots: tuple[Slot, ...] = ()


def list_page(kind: str, title: str, table: Table, paging: Paging, *, empty: str) -> Page:
    """A page that is one list."""
    known = f" of {', '.join(f'{name} {value}' for name, value in paging.query.items())}" if paging.query else ""
    return Page(
        kind=kind,
        title=title,
        verdict=Mark(title, Tone.NEUTRAL),
        reason=f"{counted(paging.count, title.lower().removesuffix('s'))}{known}." if paging.count else empty,
        sections=[Section(title=f"{title}, the newest first", blocks=[table, *paging.links()] if table.rows else [])],
    )


def histories_table(newest: Sequence[tuple[str, Series, Sequence[Entry]]], subjects: Mapping[str, str]) -> Table:
    """The newest record of each training; each comes with the key of its page and its two newest records."""
    rows: list[list[Inline]] = []
    for key, series, entries in newest:
        entry = entries[-1]
        loss, before = last_loss(entry), last_loss(entries[0]) if len(entries) > 1 else float("nan")
        is_told = loss == loss and before == before and before != 0
        where = series.lane.value + (f", {series.machine}" if series.machine != series.lane else "")
        rows.append(
            [
                Link(series.recipe, f"/history/{key}"),
                f"{series.trainer}, {where}, {metric_name(series.metric)}",
                Mark(entry.kind.value, KIND_TONES.get(entry.kind, Tone.UNSURE)),
                entry.point.mcore[:10],
                subjects.get(entry.point.mcore, ""),
                f"{loss:.8g}" if loss == loss else "",
                relative_text((loss - before) / abs(before), is_signed=True) if is_told else "",
                f"{entry.at:%Y-%m-%d %H:%M}",
                entry.reason,
            ]
        )
    head = ["training", "by", "outcome", "commit", "subject", "last loss", "change", "when (UTC)", "why"]
    marked = frozenset(n for n, (_, _, entries) in enumerate(newest) if entries[-1].kind is Kind.REGRESSION)
    return Table(head=head, rows=rows, numeric=frozenset({5, 6}), marked=marked)


def triages_table(reports: Sequence[tuple[str, TriageReport]]) -> Table:
    """Triages, in the order given, each with its id."""
    rows: list[list[Inline]] = []
    for name, report in reports:
        kind = worst(report)
        commit = report.newest
        rows.append(
            [
                Link(f"{report.at:%Y-%m-%d %H:%M}" if report.at else name, f"/triages/{name}"),
                Mark(kind.value, KIND_TONES.get(kind, Tone.UNSURE)),
                commit.short,
                commit.subject,
                commit.author,
                report.point.short,
                counted(len(report.cases), "training"),
            ]
        )
    return Table(head=["when (UTC)", "outcome", "commit", "subject", "author", "at", "of"], rows=rows)


def bisects_table(lines: Sequence[BisectLine]) -> Table:
    """Bisects, in the order given."""
    head = ["bisect", "state", "range", "recipe", "runs", "says"]
    return Table(head=head, rows=[_bisect_row(line) for line in lines], numeric=frozenset({4}))


def _bisect_row(line: BisectLine) -> list[Inline]:
    bisect, plan = line.glance, line.glance.plan
    link = Link(bisect.id, f"/bisects/{bisect.id}")
    if plan is None:
        return [link, Mark("unreadable", Tone.UNSURE), "", "", "", bisect.trouble]
    return [
        link,
        _state(line),
        f"{plan.good[:10]}..{plan.bad[:10]}",
        f"{plan.recipe} ({plan.trainer}, {plan.lane})",
        str(len(bisect.steps)),
        _says(line),
    ]


def _state(line: BisectLine) -> Mark:
    if line.is_running:
        return Mark("running", Tone.NEUTRAL)
    if isinstance(line.answer, BisectResult):
        return Mark(line.answer.answer_name, _ANSWERS.get(line.answer.answer, Tone.UNSURE))
    return Mark(
        "given up" if line.glance.is_aborted else "stopped" if line.answer else "finished or stopped", Tone.UNSURE
    )


def _says(line: BisectLine) -> str:
    if line.is_running and line.slots:
        return "; ".join(f"{slot.commit} {slot.progress}" for slot in line.slots)
    match line.answer:
        case BisectResult():
            return line.answer.finding.reason
        case Unfinished():
            return line.answer.trouble or bracket_text(line.answer)
        case str(text):
            return text
        case _:
            return "…"


def runs_table(runs: Sequence[StoredRun]) -> Table:
    """Stored runs, in the order given."""
    rows: list[list[Inline]] = []
    for run in runs:
        record = run.record
        tone = Tone.UNSURE if run.is_stale else OUTCOME_TONES.get(record.outcome, Tone.UNSURE)
        rows.append(
            [
                Link(run.id, f"/runs/{run.id}"),
                Mark("put aside" if run.is_stale else record.outcome.value, tone),
                Link(run.mcore_commit[:10], f"/runs?{urlencode({'commit': run.mcore_commit})}"),
                Link(run.recipe, f"/runs?{urlencode({'recipe': run.recipe}, quote_via=quote)}"),
                f"{record.spec.trainer}, {record.spec.lane}",
                f"{run.iterations:,}",
                "" if run.last_loss is None else f"{run.last_loss:.8g}",
                f"{record.duration_s:.0f} s",
                size_text(run.size_bytes),
            ]
        )
    head = ["run", "outcome", "commit", "recipe", "by", "iterations", "last loss", "time", "size"]
    return Table(head=head, rows=rows, numeric=frozenset({5, 6, 7, 8}))
