"""The answer of a bisection as text, JSON, a Markdown report to paste into an issue, and a picture."""

import json
import math
import shlex
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from lossbisect.bisect.culprit import Answer, BisectResult, Culprit
from lossbisect.bisect.follow_bridge import other_bridges
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.state import step_to_json
from lossbisect.bisect.types import BisectStep, CommitInfo, CommitVerdict
from lossbisect.compare.wording import counted, metric_name, relative_text
from lossbisect.errors import LossbisectError
from lossbisect.report.changes import changes_json, changes_markdown, changes_text
from lossbisect.report.json import without_nan
from lossbisect.report.plain import printable
from lossbisect.train.types import Outcome

__all__ = [
    "SCHEMA_VERSION",
    "again_command",
    "bisect_json",
    "bisect_markdown",
    "bisect_text",
    "is_proven",
    "printable",
    "resume_command",
    "warnings_of",
    "write_report",
]

SCHEMA_VERSION = 1
"""Raised when a key goes or changes its meaning; new keys don't raise it."""

_MOST_FILES = 8
_MOST_CANDIDATES = 20
_MOST_ITERATIONS = 12
_HARMLESS = (
    "This commit changes only {what}. It and its parent were run once more, and gave the same. Doubt it all the same: "
    "something outside the code may have changed between the runs."
)
_NOT_ALONE = "Taking this commit back doesn't bring the loss back: another commit of the range keeps it away too."


def bisect_text(result: BisectResult) -> str:
    """Several lines for a terminal, without colour and without a final newline; the first starts with the answer."""
    curves = _curve_rows(result)
    blocks = [
        f"{result.answer_name.upper()}: {result.finding.reason}",
        _who_text(result),
        _way_text(result),
        "\n".join(f"warning: {warning}" for warning in warnings_of(result)),
        f"{metric_name(result.plan.metric)}\n{_text_table(curves)}" if curves else "",
        f"runs\n{_text_table(_step_rows(result))}",
        result.confidence,
        f"runs and journal: {result.directory}",
        _next_step(result),
    ]
    return printable("\n\n".join(block for block in blocks if block))


def bisect_json(result: BisectResult) -> str:
    """One object, indented, without a final newline; null for what is missing or not finite."""
    finding = result.finding
    comparison = None if finding.judgement is None else finding.judgement.comparison
    report = {
        "schema_version": SCHEMA_VERSION,
        "id": result.id,
        "answer": result.answer.value,
        "find_fix": result.plan.search.find_fix,
        "reason": finding.reason,
        "confidence": result.confidence,
        "warnings": list(warnings_of(result)),
        "culprit": None if result.culprit is None else _culprit_json(result.culprit),
        "candidates": [_commit_json(commit) for commit in result.candidates],
        "good": _commit_json(result.commits.good),
        "bad": _commit_json(result.commits.bad),
        "commits": len(result.commits.commits),
        "plan": {
            key: str(value) if isinstance(value, str | Path) else value for key, value in asdict(result.plan).items()
        },
        "noise": None if finding.noise is None else asdict(finding.noise),
        "metric": result.plan.metric,
        "difference": None if comparison is None else asdict(comparison.difference),
        "witnesses": {}
        if comparison is None
        else {name: asdict(difference) for name, difference in comparison.witnesses.items()},
        "probability": finding.probability,
        "revert": None if finding.revert is None else asdict(finding.revert),
        "changes": changes_json(result),
        "passages": [
            {"kind": each.kind.value, "id": each.id, "text": each.text, "commit": each.commit and each.commit.sha}
            for each in result.passages
        ],
        "last_good": result.commits.at(finding.good).sha,
        "first_bad": result.commits.at(finding.bad).sha,
        "curves": []
        if comparison is None
        else [
            {"iteration": iteration, "last_good": good, "first_bad": bad}
            for iteration, good, bad in comparison.curves.frame.select("iteration", "baseline", "candidate").iter_rows()
        ],
        "steps": [
            {
                **step_to_json(step),
                "role": result.terms.role(step.role),
                "verdict": result.terms.verdict(step.verdict),
            }
            for step in finding.steps
        ],
        "directory": str(result.directory),
        "command": again_command(result),
    }
    return json.dumps(without_nan(report), indent=2, allow_nan=False)


def bisect_markdown(result: BisectResult) -> str:
    """A report to paste into an issue; commits and pull requests are links where the repository is on GitHub."""
    curves = _curve_rows(result)
    blocks = [
        f"# {_title(result)}",
        result.finding.reason,
        _who_markdown(result),
        _way_markdown(result),
        "\n".join(f"> **Warning:** {warning}" for warning in warnings_of(result)),
        f"## {metric_name(result.plan.metric).capitalize()}" if curves else "",
        _markdown_table(curves) if curves else "",
        _witnesses(result),
        "## Runs",
        _markdown_table(_step_rows(result)),
        result.confidence,
        "## What ran",
        _provenance(result),
        "## Once more",
        f"```\n{again_command(result)}\n```",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def write_report(result: BisectResult, folder: Path) -> tuple[Path, ...]:
    """Write ``report.md``, ``report.json`` and, if curves were judged, ``curves.png`` into a folder; their paths.

    Raises:
        LossbisectError: A file can't be written.
    """
    from lossbisect.report.plot import draw

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(bisect_markdown(result), encoding="utf-8")
        (folder / "report.json").write_text(bisect_json(result) + "\n", encoding="utf-8")
    except OSError as error:
        raise LossbisectError(f"{folder}: the report can't be written: {error.strerror}.") from error
    good, bad = _sides(result)
    judgement = result.finding.judgement
    if judgement is None:
        return tuple(folder / name for name in ("report.md", "report.json"))
    draw(
        replace(judgement, comparison=replace(judgement.comparison, baseline=good, candidate=bad)),
        folder / "curves.png",
    )
    return tuple(folder / name for name in ("report.md", "report.json", "curves.png"))


def resume_command(bisect_id: str, work_dir: Path | None) -> str:
    """The command that goes on with a bisect."""
    where = ["--work-dir", str(work_dir)] if work_dir else []
    return shlex.join(["lossbisect", "bisect", "--resume", bisect_id, *where])


def again_command(result: BisectResult) -> str:
    """The command that runs the answer's two sides again, or the whole range where there is no single answer."""
    plan = result.plan
    good, bad = (result.culprit.parent.sha, result.culprit.commit.sha) if result.culprit else (plan.good, plan.bad)
    if plan.search.find_fix:
        good, bad = bad, good
    tolerance = (
        [] if plan.tolerance is None else ["--tolerance", f"rtol={plan.tolerance!r}" if plan.tolerance else "exact"]
    )
    words = ["lossbisect", "bisect", "--repo", str(plan.repo), "--good", good, "--bad", bad]
    if plan.scope.searched is Searched.BRIDGE:
        words += ["--search", plan.scope.searched.value]
    elif plan.bridge_commit is not None:
        words += ["--bridge", plan.bridge_commit]
    words += ["--recipe", plan.recipe, "--trainer", plan.trainer.value, "--lane", plan.lane.value]
    words += ["--python", str(plan.python), "--timeout", f"{plan.timeout_s:g}", "--metric", plan.metric, *tolerance]
    return shlex.join([*words, *_search_words(plan.search)])


def _search_words(search: SearchOptions) -> list[str]:
    """The options that say what is hunted, and with what commits are run."""
    words = [] if search.regress is Regress.LOSS else ["--regress", search.regress.value]
    words += ["--find-fix"] if search.find_fix else []
    words += [] if search.min_effect is None else ["--min-effect", f"{search.min_effect:g}"]
    for fixup in search.fixups:
        words += ["--fixup", fixup.name if fixup.when is None else f"{fixup.name}@{fixup.when}"]
    return words


def _next_step(result: BisectResult) -> str:
    """What a person at the terminal may do next."""
    if result.answer is Answer.SEVERAL:
        root = result.directory.parents[1]
        retry = shlex.join(["lossbisect", "bisect", "--resume", result.id, "--retry-skipped", "--work-dir", str(root)])
        return f"if the skipped commits can be made to run, go on with: {retry}"
    return f"once more: {again_command(result)}"


def _title(result: BisectResult) -> str:
    what = result.terms.hunted or metric_name(result.plan.metric)
    if result.culprit:
        certainty = "" if result.answer is Answer.FOUND else " (unconfirmed)"
        commit = result.culprit.commit
        return f"{what} {result.terms.moved} by {commit.short}{certainty}: {commit.subject}"
    if result.answer is Answer.EVERY_CHANGE:
        ends = f"{result.commits.good.short}..{result.commits.bad.short}"
        return f"{what}: {counted(len(result.finding.changes), 'change')} in {ends}"
    if result.answer is Answer.SEVERAL:
        return f"{what} {result.terms.moved} by one of {counted(len(result.candidates), 'commit')}"
    return f"{what}: {result.answer.value} between {result.commits.good.short} and {result.commits.bad.short}"


def warnings_of(result: BisectResult) -> tuple[str, ...]:
    """What a reader should know before believing the answer."""
    what, revert = result.culprit.harmless if result.culprit else None, result.finding.revert
    harmless = (_HARMLESS.format(what=what),) if what is not None else ()
    not_alone = (_NOT_ALONE,) if revert is not None and revert.comes_back is False else ()
    bridges = other_bridges(result.finding.steps, result.plan.bridge_commit)
    return (*harmless, *not_alone, *([bridges] if bridges else []), *result.finding.warnings)


def _sides(result: BisectResult) -> tuple[str, str]:
    """Names of the two curves that are shown."""
    terms = result.terms
    good, bad = (result.commits.at(index).short for index in (result.finding.good, result.finding.bad))
    return f"{good} ({terms.last})", f"{bad} ({terms.turning if result.culprit else terms.new})"


def _who_text(result: BisectResult) -> str:
    if result.finding.changes:
        return changes_text(result)
    return _culprit_text(result.culprit, result) if result.culprit else _candidates_text(result.candidates)


def _way_text(result: BisectResult) -> str:
    lines = [f"  {number}  {each.text}" for number, each in enumerate(result.passages, start=1)]
    return "\n".join(["on the way", *lines]) if lines else ""


def _way_markdown(result: BisectResult) -> str:
    lines = [f"{number}. {_escaped(each.text)}" for number, each in enumerate(result.passages, start=1)]
    return "\n".join(["## On the way", "", *lines]) if lines else ""


def _culprit_text(culprit: Culprit, result: BisectResult) -> str:
    commit = culprit.commit
    rows = [
        ["commit", commit.sha],
        ["subject", commit.subject],
        ["pull request", _reference(commit, result) or "none named"],
        ["author", f"{commit.author} <{commit.email}>"],
        ["date", commit.date],
        ["parent", f"{culprit.parent.sha}  {culprit.parent.subject}"],
        *_labelled("files", _files(culprit)),
        *([["reverted", result.reverted]] if result.reverted else []),
    ]
    rows += [["merged", f"{each.short}  {each.subject}"] for each in culprit.merged[:_MOST_FILES]]
    return _text_table(rows)


def _who_markdown(result: BisectResult) -> str:
    if result.finding.changes:
        return changes_markdown(result)
    return _culprit_markdown(result.culprit, result) if result.culprit else _candidates_markdown(result)


def _culprit_markdown(culprit: Culprit, result: BisectResult) -> str:
    commit = culprit.commit
    rows = [
        ["", ""],
        ["Commit", _linked(commit, result)],
        ["Subject", _escaped(commit.subject)],
        ["Pull request", _reference(commit, result) or "none named"],
        ["Author", _escaped(f"{commit.author} <{commit.email}>")],
        ["Date", commit.date],
        ["Parent", f"{_linked(culprit.parent, result)} {_escaped(culprit.parent.subject)}"],
        ["Files", _escaped(", ".join(_files(culprit)))],
        *([["Reverted", _escaped(result.reverted)]] if result.reverted else []),
    ]
    rows += [["Merged", f"{_linked(each, result)} {_escaped(each.subject)}"] for each in culprit.merged[:_MOST_FILES]]
    return _markdown_table(rows, is_escaped=True)


def _candidates_text(candidates: tuple[CommitInfo, ...]) -> str:
    if not candidates:
        return ""
    lines = [f"  {commit.short}  {commit.author}: {commit.subject}" for commit in candidates[:_MOST_CANDIDATES]]
    more = len(candidates) - _MOST_CANDIDATES
    return "candidates\n" + "\n".join(lines + ([f"  and {more} more"] if more > 0 else []))


def _candidates_markdown(result: BisectResult) -> str:
    lines = [
        f"- {_linked(commit, result)} {_escaped(commit.subject)} ({_escaped(commit.author)})"
        for commit in result.candidates
    ]
    return "\n".join(lines)


def _curve_rows(result: BisectResult) -> list[list[str]]:
    """Both curves with all their digits, around the first difference; none where no curves were judged."""
    if result.finding.judgement is None:
        return []
    comparison = result.finding.judgement.comparison
    rows = list(comparison.curves.frame.select("iteration", "baseline", "candidate", "delta").iter_rows())
    since = comparison.difference.first_difference
    at = next((i for i, row in enumerate(rows) if row[0] == since), 0)
    start = max(0, min(at - _MOST_ITERATIONS // 3, len(rows) - _MOST_ITERATIONS))
    shown = rows[start : start + _MOST_ITERATIONS]
    table = [["iteration", *_sides(result), "difference"]]
    for iteration, good, bad, delta in shown:
        table.append([str(iteration), _number(good), _number(bad), "equal" if good == bad else _signed(delta)])
    return table


def _step_rows(result: BisectResult) -> list[list[str]]:
    rows = [["run", "commit", "why", "verdict", "time", "reason"]]
    for number, step in enumerate(result.finding.steps, start=1):
        is_own = step.verdict is CommitVerdict.BAD and step.is_bad_curve is False
        verdict = "other curve" if is_own else result.terms.verdict(step.verdict)
        rows.append(
            [
                str(number),
                step.commit[:10],
                result.terms.role(step.role),
                f"{result.terms.new} ({verdict})" if verdict == "other curve" else verdict,
                "stored" if step.record.stored_as else f"{step.record.duration_s:.0f} s",
                f"{step.reason} ({step.record.reason})" if step.record.outcome is Outcome.CUT else step.reason,
            ]
        )
    return rows


def _witnesses(result: BisectResult) -> str:
    lines = []
    judgement = result.finding.judgement
    for name, difference in judgement.comparison.witnesses.items() if judgement is not None else ():
        if difference.first_difference is None:
            lines.append(f"- {metric_name(name)}: equal")
            continue
        since, size = difference.first_difference, relative_text(difference.largest_rel or 0.0)
        lines.append(f"- {metric_name(name)}: differs from iteration {since} on, by up to {size} relative")
    return "\n".join(lines)


def _provenance(result: BisectResult) -> str:
    plan = result.plan
    step = next((step for step in result.finding.steps if step.record.provenance), None)
    ran = step.record.provenance if step else None
    lines = [
        f"- Recipe `{plan.recipe}`, trainer {plan.trainer.value}, lane {plan.lane.value}, at most {plan.timeout_s:g} s",
        f"- {counted(len(result.commits.commits), 'commit')} after {plan.good} up to {plan.bad}, first parents",
        f"- Megatron Bridge: {plan.bridge_commit or 'not from a checkout'}",
    ]
    if ran is not None:
        lines.append(f"- Python {ran.python}, torch {ran.torch}, Megatron-Core {ran.megatron_core_version}")
    proven = sum(is_proven(step) for step in result.finding.steps)
    lines.append(f"- {proven} of {counted(len(result.finding.steps), 'run')} proved to be the commit asked for")
    return "\n".join(lines)


def is_proven(step: BisectStep) -> bool:
    """Whether the run itself said that it was the commit asked for, unchanged."""
    ran, asked = step.record.provenance, step.record.spec.sources
    wanted = asked.mcore_commit if asked.stands_for == step.commit else step.commit
    return ran is not None and ran.mcore_commit == wanted and ran.is_clean is not False


def _reference(commit: CommitInfo, result: BisectResult) -> str | None:
    """``owner/name#123``: GitHub makes a link of it in any issue."""
    if commit.pull_request is None or not commit.pull_request.startswith("#"):
        return commit.pull_request
    return f"{result.repository or ''}{commit.pull_request}"


def _linked(commit: CommitInfo, result: BisectResult) -> str:
    return f"{result.repository}@{commit.sha}" if result.repository else f"`{commit.sha}`"


def _labelled(label: str, texts: list[str]) -> list[list[str]]:
    """Rows for a list of texts; the label stands in the first one."""
    return [[label if number == 0 else "", text] for number, text in enumerate(texts)]


def _files(culprit: Culprit) -> list[str]:
    shown = [f"{file.path} ({file.status})" for file in culprit.files[:_MOST_FILES]]
    more = len(culprit.files) - _MOST_FILES
    return shown + ([f"and {more} more"] if more > 0 else []) or ["none"]


def _commit_json(commit: CommitInfo) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(commit).items()}


def _culprit_json(culprit: Culprit) -> dict[str, object]:
    return {
        **_commit_json(culprit.commit),
        "parent": culprit.parent.sha,
        "files": [asdict(file) for file in culprit.files],
        "merged": [_commit_json(commit) for commit in culprit.merged],
        "is_harmless": culprit.harmless is not None,
        "harmless": culprit.harmless,
    }


def _number(value: float | None) -> str:
    return "missing" if value is None else repr(value)


def _signed(delta: float | None) -> str:
    return "" if delta is None or not math.isfinite(delta) else f"{delta:+.3e}"


def _text_table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line}".rstrip() for line in padded)


def _markdown_table(rows: list[list[str]], *, is_escaped: bool = False) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell if is_escaped else _escaped(cell) for cell in cells)} |"

    return "\n".join([line(rows[0]), line(["---"] * len(rows[0])), *map(line, rows[1:])])


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line of a table; an ``@name`` or ``#1`` in it rings nobody."""
    text = " ".join(text.split())
    for mark in ("\\", "`", "*", "_", "<", ">", "[", "]", "|"):
        text = text.replace(mark, f"\\{mark}")
    return text.replace("@", "@\u200b").replace("#", "#\u200b")
