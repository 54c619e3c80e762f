"""The history of triages as text, JSON and a picture."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.errors import LossbisectError
from lossbisect.report.json import without_nan
from lossbisect.report.plain import printable
from lossbisect.triage.tip import LEAST_BEFORE, TipTest, last_value, tip_test
from lossbisect.triage.types import Entry, Kind, Series

__all__ = [
    "SCHEMA_VERSION",
    "draw_history",
    "history_json",
    "history_text",
    "last_loss",
    "series_title",
    "tip_of",
    "tip_text",
]

SCHEMA_VERSION = 1
_HEAD = ("when", "commit", "kind", "last loss", "change", "why")
_MOST_REASON = 72
_COLOURS = {
    Kind.OK: "#1b6e3c",
    Kind.REGRESSION: "#b3261e",
    Kind.IMPROVEMENT: "#0072b2",
    Kind.ENVIRONMENT: "#8a5a00",
    Kind.ACKNOWLEDGED: "#5b6370",
}
_OTHER = "#8a94a3"


def last_loss(entry: Entry) -> float:
    """The last iteration's value; NaN where there is none."""
    return last_value(entry.curve)


def tip_of(entries: Sequence[Entry]) -> TipTest | None:
    """Whether the newest commit's last loss has left the level of those before it; None where that can't be said."""
    there = [entry for entry in entries if entry.curve]
    if not there:
        return None
    newest = [last_loss(entry) for entry in there if entry.point == there[-1].point]
    before = [last_loss(entry) for entry in there if entry.point != there[-1].point]
    return tip_test(before, newest)


def history_text(series: Series, entries: Sequence[Entry]) -> str:
    """A headline, one line an entry, the newest last, and what its newest commit's last loss says by itself."""
    rows, before = [_HEAD], math.nan
    for entry in entries:
        loss = last_loss(entry)
        is_told = math.isfinite(loss) and math.isfinite(before) and before != 0
        change = relative_text((loss - before) / abs(before), is_signed=True) if is_told else ""
        rows.append(
            (
                f"{entry.at:%Y-%m-%d %H:%M}",
                entry.point.mcore[:10],
                entry.kind.value,
                "" if math.isnan(loss) else f"{loss:.6g}",
                change,
                entry.reason[:_MOST_REASON],
            )
        )
        before = loss if math.isfinite(loss) else before
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return printable("\n".join([series_title(series, len(entries)), "", *lines, "", tip_text(tip_of(entries))]))


def series_title(series: Series, count: int) -> str:
    """Recipe, trainer, lane and metric of a series, and how many records it has."""
    machine = f", {series.machine}" if series.machine != series.lane else ""
    what = f"{series.recipe} ({series.trainer}, {series.lane}{machine}), {metric_name(series.metric)}"
    return f"{what}: {counted(count, 'record')}"


def tip_text(found: TipTest | None) -> str:
    """One sentence: whether the newest commit's last loss lies within the scatter of those before."""
    if found is None:
        return f"newest commit: fewer than {LEAST_BEFORE} records of other commits, so their scatter can't be told"
    where = "beyond" if found.is_alarm else "within"
    return (
        f"newest commit: {found.shift:+.2g} from the level {found.level:.6g} of {counted(found.before, 'record')}, "
        f"{where} the {found.limit:.2g} that their scatter explains (false alarms: {found.false_alarm_rate:.0%} a look)"
    )


def history_json(found: Sequence[tuple[Series, Sequence[Entry]]]) -> str:
    """One object, indented, without a final newline."""
    rows = []
    for series, entries in found:
        tip = tip_of(entries)
        told = [{**asdict(entry), "last_loss": last_loss(entry)} for entry in entries]
        tested = {**asdict(tip), "is_alarm": tip.is_alarm} if tip else None
        rows.append({**asdict(series), "tip": tested, "entries": told})
    report = without_nan({"schema_version": SCHEMA_VERSION, "series": rows})
    return json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False, default=str)


def draw_history(found: Sequence[tuple[Series, Sequence[Entry]]], path: Path) -> None:
    """Write a picture: the last loss over the records of each series, marked by what was said.

    Raises:
        ValueError: A path that `check_plot_path` refuses.
        LossbisectError: It can't be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from lossbisect.report.plot import check_plot_path

    check_plot_path(path)
    figure = Figure(figsize=(9.6, 2.6 * len(found) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (series, entries) in enumerate(found, start=1):
        axes = figure.add_subplot(len(found), 1, place)
        losses = [last_loss(entry) for entry in entries]
        axes.plot(range(len(losses)), losses, color="#d5d9df", zorder=1)
        colours = [_COLOURS.get(entry.kind, _OTHER) for entry in entries]
        axes.scatter(range(len(losses)), losses, color=colours, zorder=2)
        shown = range(0, len(entries), max(1, len(entries) // 12))
        axes.set_xticks(list(shown), [entries[at].point.mcore[:7] for at in shown], rotation=30, ha="right")
        axes.set_title(printable(series_title(series, len(entries))), loc="left", fontsize=10, parse_math=False)
        axes.set_ylabel(f"last {metric_name(series.metric)}")
        axes.grid(visible=True, color="#e4e7eb")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise LossbisectError(f"{path}: the picture can't be written: {error.strerror}.") from error
