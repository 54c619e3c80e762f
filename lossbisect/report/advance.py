"""How far a pin can be moved, as text and JSON."""

import json
import shlex
from typing import Any

from lossbisect.bisect.culprit import Answer, BisectResult
from lossbisect.bisect.types import CommitInfo, CommitVerdict
from lossbisect.compare.wording import counted, metric_name
from lossbisect.report.json import without_nan
from lossbisect.report.plain import printable

__all__ = ["advance_json", "advance_text", "newest_of"]

SCHEMA_VERSION = 1
_MOST_NAMED = 5


def newest_of(result: BisectResult) -> CommitInfo | None:
    """The newest commit that gives today's loss, where it is newer than today's; None where there is none."""
    if result.answer is Answer.NO_CULPRIT:
        return result.commits.bad
    return result.commits.at(result.finding.good) if result.finding.good >= 0 else None


def advance_text(result: BisectResult) -> str:
    """Several lines for a terminal, without a final newline; the first says how far."""
    commits, plan, newest = result.commits, result.plan, newest_of(result)
    name, last = metric_name(plan.metric), len(commits.commits)
    lines = []
    if newest is None:
        lines.append(f"STAY: no commit after {commits.good.short} is known to give its {name}.")
    else:
        on = last if result.answer is Answer.NO_CULPRIT else result.finding.good + 1
        whole = ", the newest one" if newest == commits.bad else ""
        lines.append(
            f"ADVANCE to {newest.short}{whole}: {on} of {counted(last, 'commit')} on, it gives the same {name}."
        )
        lines += ["", f"  newest that does     {_named(newest)}"]
    if result.answer is not Answer.NO_CULPRIT:
        first = commits.at(result.finding.bad)
        lines += [] if newest is not None else [""]
        lines.append(f"  first that doesn't   {_named(first)}")
        lines.append(f"                       {_why(result)}")
        lines += [f"                       {line}" for line in _between(result)]
    lines.append(f"  in use today         {_named(commits.good)}")
    lines += ["", *(f"warning: {warning}" for warning in result.finding.warnings)]
    tested = sum(step.verdict is not CommitVerdict.SKIP for step in result.finding.steps)
    lines.append(
        f"{tested} runs judged, {len(result.finding.steps) - tested} skipped, recipe {plan.recipe}, trainer "
        f"{plan.trainer.value}, lane {plan.lane.value}. Journal: {result.directory}"
    )
    if newest is not None:
        lines.append(f"move there: {_command(result, newest)}")
    return printable("\n".join(lines))


def advance_json(result: BisectResult) -> str:
    """The same as one object, indented, without a final newline."""
    newest = newest_of(result)
    is_whole = result.answer is Answer.NO_CULPRIT
    report: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "id": result.id,
        "in_use": result.commits.good.sha,
        "newest": None if newest is None else newest.sha,
        "commits_on": 0 if newest is None else (len(result.commits.commits) if is_whole else result.finding.good + 1),
        "commits": len(result.commits.commits),
        "first_other": None if is_whole else result.commits.at(result.finding.bad).sha,
        "why": None if is_whole else _why(result),
        "untestable_between": [] if is_whole else [commit.sha for commit in _untestable(result)],
        "is_confirmed": result.answer is not Answer.UNCONFIRMED,
        "recipe": result.plan.recipe,
        "trainer": result.plan.trainer.value,
        "warnings": list(result.finding.warnings),
        "runs": len(result.finding.steps),
        "directory": str(result.directory),
    }
    return json.dumps(without_nan(report), indent=2, allow_nan=False)


def _why(result: BisectResult) -> str:
    if result.answer is Answer.UNCONFIRMED:
        return f"not confirmed: {result.finding.reason}"
    steps = [step for step in result.finding.steps if step.index == result.finding.bad]
    return next((step.reason for step in steps if step.verdict is CommitVerdict.BAD), result.finding.reason)


def _untestable(result: BisectResult) -> tuple[CommitInfo, ...]:
    return result.commits.commits[result.finding.good + 1 : result.finding.bad]


def _between(result: BisectResult) -> list[str]:
    """The commits between the two, which can't be tested."""
    between = _untestable(result)
    if not between:
        return []
    names = ", ".join(commit.short for commit in between[:_MOST_NAMED])
    more = f" and {len(between) - _MOST_NAMED} more" if len(between) > _MOST_NAMED else ""
    reasons = {step.reason for step in result.finding.steps if step.commit in {commit.sha for commit in between}}
    return [f"{counted(len(between), 'commit')} before it can't be tested: {names}{more}", *sorted(reasons)[:3]]


def _named(commit: CommitInfo) -> str:
    return f"{commit.short}  {commit.subject} ({commit.author})"


def _command(result: BisectResult, newest: CommitInfo) -> str:
    repo = str(result.plan.repo)
    if result.plan.bridge_commit is not None:
        return shlex.join(["lossbisect", "mcore", "use", newest.sha, "--repo", repo])
    return shlex.join(["git", "-C", repo, "checkout", newest.sha])
