"""Every change of a range as text, Markdown and JSON: a changelog of the loss."""

import json
from dataclasses import asdict

from lossbisect.bisect.culprit import BisectResult, Change
from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.report.json import without_nan

__all__ = ["changelog_json", "changelog_markdown", "changes_json", "changes_markdown", "changes_text"]

_MOST_NAMED = 3


def changes_text(result: BisectResult) -> str:
    """One line for each change, and one for each other metric that moved with it."""
    lines = []
    for change in result.finding.changes:
        lines.append(f"  {_names(change, result)}  {_shown(change, result)}")
        lines += [f"    {line}" for line in _witnesses(change)]
    return "\n".join(lines)


def changes_markdown(result: BisectResult) -> str:
    """A table, oldest change first; commits and pull requests are links where the repository is on GitHub."""
    rows = ["| commit | subject | author | since iteration | size | other metrics |", "|---|---|---|---|---|---|"]
    for change in result.finding.changes:
        commit = result.commits.at(change.bad)
        difference = change.judgement.comparison.difference
        size = "not finite" if difference.largest_rel is None else relative_text(difference.largest_rel)
        cells = [
            _linked(change, result),
            _safe(commit.subject),
            _safe(commit.author),
            str(difference.first_difference),
            size,
            "; ".join(_witnesses(change)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def changelog_markdown(result: BisectResult) -> str:
    """The whole changelog between two commits."""
    good, bad = result.commits.good.short, result.commits.bad.short
    plan = result.plan
    tested = len({step.index for step in result.finding.steps})
    what_ran = (
        f"{counted(len(result.commits.commits), 'commit')}, {tested} of them run with recipe `{plan.recipe}`, trainer "
        f"{plan.trainer.value}, lane {plan.lane.value}. {result.confidence} Between two commits with the same curve no "
        "change is looked for: one that came and went there is not seen."
    )
    lines = [
        f"# {metric_name(plan.metric).capitalize()} changes, {good}..{bad}",
        result.finding.reason,
        changes_markdown(result) if result.finding.changes else "",
        what_ran,
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def changelog_json(result: BisectResult) -> str:
    """The changelog as one object, indented, without a final newline."""
    report = {
        "schema_version": 1,
        "good": result.commits.good.sha,
        "bad": result.commits.bad.sha,
        "commits": len(result.commits.commits),
        "runs": len(result.finding.steps),
        "metric": result.plan.metric,
        "recipe": result.plan.recipe,
        "reason": result.finding.reason,
        "changes": changes_json(result),
        "warnings": list(result.finding.warnings),
        "directory": str(result.directory),
    }
    return json.dumps(without_nan(report), indent=2, allow_nan=False)


def changes_json(result: BisectResult) -> list[dict[str, object]]:
    """Each change with its commits, its difference and its witnesses, as plain values."""
    return [
        {
            "commits": [commit.sha for commit in result.commits.commits[change.good + 1 : change.bad + 1]],
            "subject": result.commits.at(change.bad).subject,
            "pull_request": result.commits.at(change.bad).pull_request,
            "before": result.commits.at(change.good).sha,
            "difference": asdict(change.judgement.comparison.difference),
            "witnesses": {name: asdict(each) for name, each in change.judgement.comparison.witnesses.items()},
        }
        for change in result.finding.changes
    ]


def _names(change: Change, result: BisectResult) -> str:
    commit = result.commits.at(change.bad)
    more = change.bad - change.good - 1
    if not more:
        return f"{commit.short} {commit.subject} ({commit.author})"
    return f"one of the {more + 1} commits after {result.commits.at(change.good).short} up to {commit.short}"


def _shown(change: Change, result: BisectResult) -> str:
    difference = change.judgement.comparison.difference
    size = "" if difference.largest_rel is None else f", up to {relative_text(difference.largest_rel)} relative"
    return f"{metric_name(result.plan.metric)} from iteration {difference.first_difference} on{size}"


def _witnesses(change: Change) -> list[str]:
    return [
        f"{metric_name(name)} from iteration {each.first_difference} on, up to {relative_text(each.largest_rel or 0.0)}"
        for name, each in change.judgement.comparison.witnesses.items()
        if each.first_difference is not None
    ][:_MOST_NAMED]


def _linked(change: Change, result: BisectResult) -> str:
    commits = result.commits.commits[change.good + 1 : change.bad + 1]
    shown = [f"{result.repository}@{each.sha}" if result.repository else f"`{each.sha}`" for each in commits]
    more = len(shown) - _MOST_NAMED
    return " or ".join(shown[:_MOST_NAMED]) + (f" or {more} more" if more > 0 else "")


def _safe(text: str) -> str:
    """Text that Markdown shows as it is, in one cell; a name or number in it rings nobody."""
    for mark in ("\\", "`", "*", "_", "<", ">", "[", "]", "|"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split()).replace("@", "@\u200b").replace("#", "#\u200b")
