"""The page of one training's history: the last loss over the records, and what was said of each."""

import math
from collections.abc import Mapping, Sequence

from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.report.history import last_loss, series_title, tip_of, tip_text
from lossbisect.report.html.model import Inline, Mark, Page, Section, Table, Text, Tone, Trend
from lossbisect.triage.tip import TipTest
from lossbisect.triage.types import Acknowledgement, Entry, Kind, Series

__all__ = ["KIND_TONES", "entry_rows", "history_page", "trend_data"]

KIND_TONES = {
    Kind.OK: Tone.GOOD,
    Kind.REGRESSION: Tone.BAD,
    Kind.IMPROVEMENT: Tone.BAD,
    Kind.BROKEN: Tone.BAD,
    Kind.ENVIRONMENT: Tone.NEUTRAL,
    Kind.ACKNOWLEDGED: Tone.NEUTRAL,
}
"""How a kind looks; the others are unsure."""
_MOVED = (Kind.REGRESSION, Kind.IMPROVEMENT)
_HEAD = ("when (UTC)", "commit", "subject", "outcome", "last loss", "change", "why", "Bridge")
_NUMERIC = frozenset({4, 5})


def history_page(
    series: Series,
    entries: Sequence[Entry],
    acknowledged: Mapping[str, Acknowledgement],
    *,
    count: int,
    subjects: Mapping[str, str],
    table: Section,
) -> Page:
    """The page of a series.

    Args:
        series: Which training.
        entries: The records to draw, the oldest first.
        acknowledged: By the commit's full SHA.
        count: Records that there are in all.
        subjects: Subjects of commits that are known, by full SHA.
        table: The records as a table.
    """
    newest = entries[-1]
    tip = tip_of(entries)
    older = f" The {counted(count - len(entries), 'record')} before aren't drawn." if count > len(entries) else ""
    given = [item for item in acknowledged.values() if any(_is_about(entry, item.commit) for entry in entries)]
    rows: list[list[Inline]] = [[item.commit[:10], item.reason, item.by, f"{item.at:%Y-%m-%d %H:%M}"] for item in given]
    acks = Table(head=["commit", "reason", "by", "when"], rows=rows)
    return Page(
        kind="history",
        title=f"{newest.kind}: {series.recipe}",
        verdict=Mark(newest.kind.value, KIND_TONES.get(newest.kind, Tone.UNSURE)),
        reason=f"{series_title(series, count)}. Newest: {newest.point.short}, {newest.reason}.{older}",
        sections=[
            Section(
                title="Over the records",
                blocks=[Trend(trend_data(series, entries, acknowledged, subjects, tip)), Text(tip_text(tip))],
            ),
            Section(title="Acknowledged", blocks=[acks] if rows else []),
            table,
        ],
    )


def trend_data(
    series: Series,
    entries: Sequence[Entry],
    acknowledged: Mapping[str, Acknowledgement],
    subjects: Mapping[str, str],
    tip: TipTest | None,
) -> dict[str, object]:
    """The plot's data as ``assets/trend.js`` reads it: values, texts and tones of each record, and marks between them.

    A mark stands before the record that it is about: where a loss moved (each move once, not every record that still
    shows it), where the environment moved, and where a move is acknowledged.
    """
    losses = [last_loss(entry) for entry in entries]
    band = None
    if tip is not None and tip.limit > 0:
        low, high = tip.level - tip.limit, tip.level + tip.limit
        band = {"low": low, "high": high, "text": f"scatter of {counted(tip.before, 'record')}"}
    return {
        "label": f"last {metric_name(series.metric)}",
        "y": [loss if math.isfinite(loss) else None for loss in losses],
        "ticks": [entry.point.mcore[:7] for entry in entries],
        "kinds": [KIND_TONES.get(entry.kind, Tone.UNSURE).value for entry in entries],
        "head": ["record", "commit", "subject", "outcome", "why"],
        "rows": [
            [
                f"{entry.at:%Y-%m-%d %H:%M} UTC",
                entry.point.short,
                _subject(entry, subjects),
                entry.kind.value,
                entry.reason,
            ]
            for entry in entries
        ],
        "marks": _marks(entries, acknowledged),
        "band": band,
    }


def entry_rows(
    entries: Sequence[Entry],
    before: Entry | None,
    acknowledged: Mapping[str, Acknowledgement],
    subjects: Mapping[str, str],
) -> Table:
    """Records as a table, the newest first.

    Args:
        entries: The oldest first.
        before: The record before the first one, that its change is measured from.
        acknowledged: By the commit's full SHA.
        subjects: Subjects of commits that are known, by full SHA.
    """
    rows: list[list[Inline]] = []
    level = last_loss(before) if before else math.nan
    for entry in entries:
        loss = last_loss(entry)
        is_told = math.isfinite(loss) and math.isfinite(level) and level != 0
        given = next((item for item in acknowledged.values() if _is_about(entry, item.commit)), None)
        kind = f"{entry.kind}, acknowledged" if given and entry.kind in _MOVED else entry.kind.value
        tone = Tone.NEUTRAL if given and entry.kind in _MOVED else KIND_TONES.get(entry.kind, Tone.UNSURE)
        rows.append(
            [
                f"{entry.at:%Y-%m-%d %H:%M}",
                entry.point.mcore[:10],
                _subject(entry, subjects),
                Mark(kind, tone),
                "" if math.isnan(loss) else f"{loss:.8g}",
                relative_text((loss - level) / abs(level), is_signed=True) if is_told else "",
                entry.reason,
                (entry.point.bridge or "")[:10],
            ]
        )
        level = loss if math.isfinite(loss) else level
    is_bridge = any(entry.point.bridge for entry in entries)
    head = _HEAD if is_bridge else _HEAD[:-1]
    return Table(head=head, rows=[row[: len(head)] for row in rows[::-1]], numeric=_NUMERIC)


def _marks(entries: Sequence[Entry], acknowledged: Mapping[str, Acknowledgement]) -> list[tuple[int, str, str, str]]:
    """Place, tone, sentence and name of each change."""
    marks = []
    culprits: tuple[str, ...] = ()
    for at, entry in enumerate(entries):
        whose = entry.culprits or (entry.point.mcore,)
        if entry.kind in (*_MOVED, Kind.ACKNOWLEDGED) and whose != culprits:
            culprits = whose
            names = " or ".join(sha[:10] for sha in whose[:3])
            given = next((acknowledged[sha] for sha in whose if sha in acknowledged), None)
            if given:
                told = f"moved by {names}, acknowledged: {given.reason} ({given.by})"
                marks.append((at, Tone.NEUTRAL.value, told, "acknowledged"))
            else:
                marks.append((at, Tone.BAD.value, f"moved by {names}", "moved"))
        elif entry.kind is Kind.ENVIRONMENT:
            marks.append((at, Tone.UNSURE.value, "the environment gives other numbers from here on", "environment"))
    return marks


def _is_about(entry: Entry, commit: str) -> bool:
    return commit in (*entry.culprits, entry.point.mcore, entry.point.bridge)


def _subject(entry: Entry, subjects: Mapping[str, str]) -> str:
    return subjects.get(entry.point.mcore, "")
