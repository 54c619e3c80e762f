"""The page of a changelog: every commit of a range that changed the loss, with its first iteration and its size."""

from urllib.parse import quote

from lossbisect.bisect.culprit import BisectResult, Change
from lossbisect.compare.wording import counted, metric_name
from lossbisect.report.bisect import warnings_of
from lossbisect.report.changes import change_cells, change_columns, span_text, tested_text
from lossbisect.report.html.bisect import Evidence, Links, runs_sections
from lossbisect.report.html.charts import chart_data
from lossbisect.report.html.model import Bullets, Charts, Facts, Inline, Link, Mark, Page, Section, Table, Text, Tone
from lossbisect.report.html.origin import Origin, again

__all__ = ["changelog_page"]

_MOST_NAMED = 3
_MOST_CHARTS = 20


def changelog_page(result: BisectResult, evidence: Evidence, origin: Origin, links: Links | None = None) -> Page:
    """Verdict first, then each change, its curves, and the runs that it all rests on."""
    changes = result.finding.changes
    kind = counted(len(changes), "change") if changes else "no change"
    warnings = warnings_of(result)
    return Page(
        kind="changelog",
        title=f"{kind}: {span_text(result)}",
        verdict=Mark(kind, Tone.BAD if changes else Tone.GOOD),
        reason=f"{metric_name(result.plan.metric).capitalize()}, {span_text(result)}: {result.finding.reason}",
        sections=[
            Section(title="Changes", blocks=[_table(result)] if changes else []),
            Section(title="Before you believe it", blocks=[Bullets(warnings)] if warnings else []),
            *(_section(change, result) for change in changes[:_MOST_CHARTS]),
            Section(title="What it rests on", blocks=[Text(tested_text(result, code=""))]),
            *runs_sections(result, evidence, links),
            again(origin),
        ],
    )


def _table(result: BisectResult) -> Table:
    rows: list[list[Inline]] = []
    for number, change in enumerate(result.finding.changes, start=1):
        commit = result.commits.at(change.bad)
        rows.append(
            [
                str(number),
                _linked(change, result),
                commit.subject,
                commit.author,
                commit.date[:10],
                *change_cells(change),
            ]
        )
    what = change_columns(result)
    head = ["", "commit", "subject", "author", "date", *what]
    return Table(head=head, rows=rows, numeric=frozenset({5, 6}) if len(what) > 2 else frozenset())


def _section(change: Change, result: BisectResult) -> Section:
    commit, before = result.commits.at(change.bad), result.commits.at(change.good)
    facts: list[tuple[str, Inline]] = [
        ("commit", _linked(change, result)),
        ("author", f"{commit.author} <{commit.email}>"),
        ("pull request", _pull_request(change, result)),
        ("before it", f"{before.short} {before.subject}"),
        ("why", change.judgement.reason if change.judgement else "; then ".join(change.shown or ())),
    ]
    names = (f"{before.short} before", f"{commit.short} after")
    title = f"{commit.short} {commit.subject}"
    charts = [] if change.judgement is None else [Charts(chart_data([change.judgement], names))]
    return Section(title=title, blocks=[Facts(facts), *charts])


def _linked(change: Change, result: BisectResult) -> Inline:
    commits = result.commits.commits[change.good + 1 : change.bad + 1]
    if len(commits) > 1:
        more = f" and {len(commits) - _MOST_NAMED} more" if len(commits) > _MOST_NAMED else ""
        return f"one of {', '.join(each.short for each in commits[:_MOST_NAMED])}{more}"
    if result.repository is None:
        return commits[0].short
    return Link(commits[0].short, f"https://github.com/{quote(result.repository)}/commit/{quote(commits[0].sha)}")


def _pull_request(change: Change, result: BisectResult) -> Inline:
    named = result.commits.at(change.bad).pull_request
    if named is None:
        return "none named"
    if result.repository and named.startswith("#"):
        return Link(named, f"https://github.com/{quote(result.repository)}/pull/{quote(named[1:])}")
    return named
