"""Every change of a range as text, Markdown and JSON: a changelog of the loss."""

import json
from dataclasses import asdict

from lossbisect.bisect.culprit import BisectResult, Change
from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.report.json import without_nan

__all__ = [
    "change_cells",
    "change_columns",
    "changelog_json",
    "changelog_markdown",
    "changes_json",
    "changes_markdown",
    "changes_text",
    "span_text",
    "tested_text",
    "witness_texts",
]

_MOST_NAMED = 3


def changes_text(result: BisectResult) -> str:
    """One line for each change, and one for each other metric that moved with it."""
    lines = []
    for change in result.finding.changes:
        lines.append(f"  {_names(change, result)}  {_shown(change, result)}")
        lines += [f"    {line}" for line in witness_texts(change)]
    return "\n".join(lines)


def changes_markdown(result: BisectResult) -> str:
    """A table, oldest change first; commits and pull requests are links where the repository is on GitHub."""
    what = change_columns(result)
    rows = [f"| commit | subject | author | {' | '.join(what)} |", f"|{'---|' * (3 + len(what))}"]
    for change in result.finding.changes:
        commit = change.told_by(result.commits)
        told = [_linked(change, result), _safe(commit.subject), _safe(commit.author)]
        rows.append(f"| {' | '.join([*told, *map(_safe, change_cells(change))])} |")
    return "\n".join(rows)


def change_columns(result: BisectResult) -> list[str]:
    """Heads of the columns of `change_cells`."""
    if all(change.judgement is None for change in result.finding.changes):
        return ["before", "after"]
    return ["since iteration", "size", "other metrics"]


def change_cells(change: Change) -> list[str]:
    """What changed: of curves since when, how much and what moved with it; else what runs showed before and after."""
    if change.judgement is None:
        return list(change.shown or ("", ""))
    difference = change.judgement.comparison.difference
    size = "not finite" if difference.largest_rel is None else relative_text(difference.largest_rel)
    return [str(difference.first_difference), size, "; ".join(witness_texts(change))]


def changelog_markdown(result: BisectResult) -> str:
    """The whole changelog between two commits."""
    lines = [
        f"# {metric_name(result.plan.metric).capitalize()} changes, {span_text(result)}",
        result.finding.reason,
        changes_markdown(result) if result.finding.changes else "",
        "\n".join(f"> **Warning:** {warning}" for warning in result.finding.warnings),
        tested_text(result),
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def span_text(result: BisectResult) -> str:
    """The two commits between which changes were looked for: ``A..B``."""
    return f"{result.commits.good.short}..{result.commits.bad.short}"


def tested_text(result: BisectResult, code: str = "`") -> str:
    """What ran, how sure it is, and what isn't seen that way.

    Args:
        result: The changelog.
        code: What stands around the recipe's name.
    """
    plan, tested = result.plan, len({step.index for step in result.finding.steps})
    return (
        f"{counted(len(result.commits.commits), 'commit')}, {tested} of them run with recipe "
        f"{code}{plan.recipe}{code}, trainer {plan.trainer.value}, lane {plan.lane.value}. {result.confidence} Between "
        f"two commits with the same {result.terms.trait} no change is looked for: one that came and went there is not "
        "seen."
    )


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
            "merged": [{"commit": each.sha, "subject": each.subject, "author": each.author} for each in change.merged],
            **_measured_json(change),
        }
        for change in result.finding.changes
    ]


def _measured_json(change: Change) -> dict[str, object]:
    if change.judgement is None:
        return {"shown": list(change.shown or ())}
    comparison = change.judgement.comparison
    witnesses = {name: asdict(each) for name, each in comparison.witnesses.items()}
    return {"difference": asdict(comparison.difference), "witnesses": witnesses}


def _names(change: Change, result: BisectResult) -> str:
    commit = result.commits.at(change.bad)
    more = change.bad - change.good - 1
    if not more:
        told = change.told_by(result.commits)
        return f"{commit.short} {told.subject} ({told.author})"
    return f"one of the {more + 1} commits after {result.commits.at(change.good).short} up to {commit.short}"


def _shown(change: Change, result: BisectResult) -> str:
    if change.judgement is None:
        return "; then ".join(change.shown or ())
    difference = change.judgement.comparison.difference
    size = "" if difference.largest_rel is None else f", up to {relative_text(difference.largest_rel)} relative"
    return f"{metric_name(result.plan.metric)} from iteration {difference.first_difference} on{size}"


def witness_texts(change: Change) -> list[str]:
    """What else moved with a change, a few words for each metric, the first few metrics."""
    if change.judgement is None:
        return []
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
