"""The page of a bisection: whose commit it was, how the range shrank, and the curves on both sides of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from lossbisect.bisect.culprit import Answer, BisectResult, Culprit
from lossbisect.bisect.terms import Terms, terms_of
from lossbisect.bisect.types import BisectStep, CommitInfo, CommitRange, CommitVerdict, Role
from lossbisect.compare.types import Judgement
from lossbisect.compare.wording import counted
from lossbisect.errors import LossbisectError
from lossbisect.redact import redact, redact_words
from lossbisect.report.bisect import again_command, is_proven, resume_command, warnings_of
from lossbisect.report.html.bracket import picture_of
from lossbisect.report.html.charts import chart_data
from lossbisect.report.html.compare import evidence_sections
from lossbisect.report.html.model import (
    Block,
    Bullets,
    Charts,
    Facts,
    Inline,
    Link,
    Mark,
    Page,
    Section,
    Step,
    Steps,
    Table,
    Text,
    Tone,
)
from lossbisect.report.html.origin import Origin, again, origin_of, write_page
from lossbisect.report.unfinished import bracket_of, bracket_text

if TYPE_CHECKING:
    from lossbisect.bisect.recall import Unfinished

__all__ = [
    "Evidence",
    "Links",
    "bisect_page",
    "page_of",
    "read_evidence",
    "read_tails",
    "runs_sections",
    "tail_of",
    "unfinished_page",
    "write_bisect_page",
]

type Links = Callable[[BisectStep], str]
"""On a site: the address of a run's own page."""

_TONES = {Answer.FOUND: Tone.BAD, Answer.NO_CULPRIT: Tone.GOOD}
_VERDICTS = {
    CommitVerdict.GOOD: Tone.GOOD,
    CommitVerdict.BAD: Tone.BAD,
    CommitVerdict.OTHER: Tone.NEUTRAL,
    CommitVerdict.SKIP: Tone.UNSURE,
}
_MOST_FILES = 40
_TAIL_LINES = 40
_TAIL_BYTES = 12_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a bisection left on the disk, as far as a page shows it.

    Attributes:
        judgements: The last good commit's curves against those of the first bad one, the good end and the bad end.
        names: What these four lines are called, the last good one first.
        tails: The end of each run's console, secrets masked, by the run's folder; runs without one are left out.
    """

    judgements: tuple[Judgement, ...]
    names: tuple[str, ...]
    tails: Mapping[Path, str]


def read_evidence(result: BisectResult, *, with_tails: bool = True) -> Evidence:
    """Read the runs' curves and, unless they aren't wanted, consoles; what is gone from the disk is left out."""
    finding, last = result.finding, len(result.commits.commits) - 1
    if finding.judgement is None:
        return Evidence(judgements=(), names=(), tails=read_tails(finding.steps) if with_tails else {})
    judgements, terms = [finding.judgement], result.terms
    names = [
        f"{result.commits.at(finding.good).short} {terms.last}",
        f"{result.commits.at(finding.bad).short} {terms.turning if result.culprit else terms.new}",
    ]
    for index, what in ((-1, terms.old_end), (last, terms.new_end)):
        if index not in (finding.good, finding.bad) and (judgement := _against_last_good(result, index)):
            judgements.append(judgement)
            names.append(f"{result.commits.at(index).short} {what}")
    tails = read_tails(finding.steps) if with_tails else {}
    return Evidence(judgements=tuple(judgements), names=tuple(names), tails=tails)


def write_bisect_page(bisect: "BisectResult | Unfinished", path: Path, arguments: Sequence[str]) -> None:
    """Read what a bisection left on the disk and write its page.

    Args:
        bisect: The answer, or how far it is.
        path: The page's file.
        arguments: The words after ``lossbisect`` of the command that asked for it.

    Raises:
        LossbisectError: The page could not be written.
    """
    write_page(page_of(bisect, origin_of(arguments, [bisect.directory / "journal.ndjson"])), path)


def page_of(bisect: "BisectResult | Unfinished", origin: Origin, links: Links | None = None) -> Page:
    """Read what a bisection left on the disk and make its page, of whatever kind it is.

    Args:
        bisect: The answer, or how far it is.
        origin: Where the page comes from.
        links: On a site each run leads to a page of its own, and the page holds no console.
    """
    if not isinstance(bisect, BisectResult):
        return unfinished_page(bisect, {} if links else read_tails(bisect.steps), origin, links)
    evidence = read_evidence(bisect, with_tails=links is None)
    if bisect.answer is Answer.EVERY_CHANGE:
        from lossbisect.report.html.changes import changelog_page

        return changelog_page(bisect, evidence, origin, links)
    return bisect_page(bisect, evidence, origin, links)


def read_tails(steps: Sequence[BisectStep]) -> dict[Path, str]:
    """The end of each run's console, secrets masked, by the run's folder; runs without one are left out."""
    return {step.record.out: tail for step in steps if (tail := tail_of(step.record.console))}


def unfinished_page(
    bisect: "Unfinished", tails: Mapping[Path, str], origin: Origin, links: Links | None = None
) -> Page:
    """How far a bisection is that goes on, or was stopped."""
    steps, commits = bisect.steps, bisect.commits
    good, bad = bracket_of(bisect)
    left = [commits.at(index) for index in range(good + 1, bad + 1)]
    reason = bracket_text(bisect)
    head = ["commit", "subject", "author", "date"]
    rows: list[list[Inline]] = [
        [_commit_link(commit, bisect.repository), commit.subject, commit.author, commit.date] for commit in left
    ]
    more = [Text(f"and {len(rows) - _MOST_FILES} more")] if len(rows) > _MOST_FILES else []
    terms = terms_of(bisect.plan.search)
    blocks: list[Block] = [picture_of(steps, commits, terms), _runs(steps, commits, tails, terms, links)]
    shrank = blocks if steps else []
    return Page(
        kind="bisect",
        title=f"unfinished: {reason}",
        verdict=Mark("unfinished", Tone.UNSURE),
        reason=bisect.trouble or reason,
        sections=[
            Section(title="How the range shrinks", blocks=shrank),
            Section(title="Commits that may hold it", blocks=[Table(head=head, rows=rows[:_MOST_FILES]), *more]),
            again(origin, resume_command(bisect.id, bisect.directory.parents[1])),
        ],
    )


def bisect_page(result: BisectResult, evidence: Evidence, origin: Origin, links: Links | None = None) -> Page:
    """The answer, who it was, how it was found, and what it rests on."""
    finding = result.finding
    rest = evidence_sections(finding.judgement) if finding.judgement is not None else []
    by_title = {section.title: section for section in rest}
    warnings = warnings_of(result)
    kept = [section for section in rest if section.title not in ("Curves", "Settings that differ", "What it rests on")]
    shrank, ran = runs_sections(result, evidence, links)
    sure = [] if finding.probability is None else [Facts([("probability", f"{finding.probability:.1%}")])]
    grounds: list[Block] = [Text(result.confidence), *sure]
    if "What it rests on" in by_title:
        grounds += by_title["What it rests on"].blocks
    return Page(
        kind="bisect",
        title=f"{result.answer_name}: {finding.reason}",
        verdict=Mark(result.answer_name, _TONES.get(result.answer, Tone.UNSURE)),
        reason=finding.reason,
        sections=[
            _who(result),
            Section(
                title="On the way",
                blocks=[Bullets([passage.text for passage in result.passages])] if result.passages else [],
            ),
            Section(title="Before you believe it", blocks=[Bullets(warnings)] if warnings else []),
            shrank,
            Section(
                title="Curves",
                blocks=[Charts(chart_data(evidence.judgements, evidence.names))] if evidence.judgements else [],
            ),
            *kept,
            Section(title="What it rests on", blocks=grounds),
            ran,
            again(origin, again_command(result), *_resume(result)),
        ],
    )


def runs_sections(result: BisectResult, evidence: Evidence, links: Links | None = None) -> tuple[Section, Section]:
    """The runs as a picture and a list, and what ran."""
    steps, terms = result.finding.steps, result.terms
    runs = _runs(steps, result.commits, evidence.tails, terms, links)
    blocks: list[Block] = [picture_of(steps, result.commits, terms), runs]
    shrank = Section(title="How the range shrank", blocks=blocks)
    return shrank, Section(title="What ran", blocks=[Facts(_provenance(result))])


def _who(result: BisectResult) -> Section:
    if result.culprit:
        return Section(
            title="The commit", blocks=[Facts(_culprit_facts(result.culprit, result)), *_files(result.culprit)]
        )
    rows: list[list[Inline]] = [
        [_commit_link(commit, result.repository), commit.subject, commit.author, commit.date]
        for commit in result.candidates
    ]
    head = ["commit", "subject", "author", "date"]
    return Section(title="Candidates", blocks=[Table(head=head, rows=rows)] if rows else [])


def _culprit_facts(culprit: Culprit, result: BisectResult) -> list[tuple[str, Inline]]:
    commit = culprit.commit
    facts: list[tuple[str, Inline]] = [
        ("subject", commit.subject),
        ("commit", _commit_link(commit, result.repository, is_whole=True)),
        ("pull request", _pull_request(commit, result)),
        ("author", f"{commit.author} <{commit.email}>"),
        ("date", commit.date),
        ("parent", _commit_link(culprit.parent, result.repository)),
        ("parent's subject", culprit.parent.subject),
        *([("reverted", result.reverted)] if result.reverted else []),
    ]
    return facts + [("merged", f"{each.short} {each.subject}") for each in culprit.merged[:_MOST_FILES]]


def _files(culprit: Culprit) -> list[Table]:
    rows = [[file.path, file.status] for file in culprit.files[:_MOST_FILES]]
    more = len(culprit.files) - _MOST_FILES
    rows += [[f"and {more} more", ""]] if more > 0 else []
    return [Table(head=["file", "change"], rows=rows)] if rows else []


def _runs(
    steps: Sequence[BisectStep], commits: CommitRange, tails: Mapping[Path, str], terms: Terms, links: Links | None
) -> Steps:
    rows = [
        Step(name=f"run-{number}", cells=_cells(number, step, commits, terms, links), details=_details(step, tails))
        for number, step in enumerate(steps, start=1)
    ]
    return Steps(["run", "commit", "why", "verdict", "time", "reason"], rows)


def _cells(number: int, step: BisectStep, commits: CommitRange, terms: Terms, links: Links | None) -> list[Inline]:
    is_own = step.verdict is CommitVerdict.BAD and step.is_bad_curve is False
    verdict = f"{terms.new}, own curve" if is_own else terms.verdict(step.verdict)
    return [
        Link(str(number), links(step)) if links else str(number),
        commits.at(step.index).short,
        terms.role(step.role),
        Mark(verdict, _VERDICTS[step.verdict]),
        "stored" if step.record.stored_as else f"{step.record.duration_s:.0f} s",
        step.reason,
    ]


def _details(step: BisectStep, tails: Mapping[Path, str]) -> str:
    tail = tails.get(step.record.out, "")
    if not tail:
        return ""
    return f"$ {' '.join(redact_words(step.record.argv))}\n# {step.record.console}, its last lines\n{tail}"


def _provenance(result: BisectResult) -> list[tuple[str, Inline]]:
    plan, steps = result.plan, result.finding.steps
    proven = sum(is_proven(step) for step in steps)
    facts: list[tuple[str, Inline]] = [
        ("recipe", f"{plan.recipe}, trainer {plan.trainer.value}, lane {plan.lane.value}"),
        ("range", f"{counted(len(result.commits.commits), 'commit')} after {plan.good} up to {plan.bad}"),
        ("Megatron Bridge", plan.bridge_commit or "not from a checkout"),
        ("longest run allowed", f"{plan.timeout_s:g} s"),
        ("proved to be the commit asked for", f"{proven} of {counted(len(steps), 'run')}"),
        ("journal and runs", str(result.directory)),
    ]
    ran = next((step.record.provenance for step in steps if step.record.provenance), None)
    if ran is not None:
        facts.append(("set-up", f"Python {ran.python}, torch {ran.torch}, Megatron-Core {ran.megatron_core_version}"))
    return facts


def _resume(result: BisectResult) -> tuple[str, ...]:
    return (resume_command(result.id, result.directory.parents[1]),)


def _commit_link(commit: CommitInfo, repository: str | None, *, is_whole: bool = False) -> Inline:
    text = commit.sha if is_whole else commit.short
    if repository is None:
        return text
    return Link(text, f"https://github.com/{quote(repository)}/commit/{quote(commit.sha)}")


def _pull_request(commit: CommitInfo, result: BisectResult) -> Inline:
    named = commit.pull_request
    if named is None:
        return "none named"
    if result.repository and named.startswith("#"):
        return Link(named, f"https://github.com/{quote(result.repository)}/pull/{quote(named[1:])}")
    return named


def _against_last_good(result: BisectResult, index: int) -> Judgement | None:
    """An end's curves against the last good commit's; None where either can't be read any more."""
    from lossbisect.compare import compare_logs
    from lossbisect.train import read_run

    last_good, other = _step_of(result, result.finding.good), _step_of(result, index)
    if last_good is None or other is None:
        return None
    try:
        logs = read_run(last_good.record), read_run(other.record)
        return compare_logs(*logs, metric=result.plan.metric, tolerance=result.finding.noise)
    except (LossbisectError, OSError):
        return None


def _step_of(result: BisectResult, index: int) -> BisectStep | None:
    again = (Role.GOOD_AGAIN, Role.BAD_AGAIN, Role.CANARY, Role.PARENT_AGAIN, Role.CULPRIT_AGAIN, Role.REVERTED)
    fitting = (step for step in result.finding.steps if step.index == index and step.role not in again)
    return next((step for step in fitting if step.verdict is not CommitVerdict.SKIP), None)


def tail_of(console: Path) -> str:
    """The last lines of a run's console, secrets masked; empty if there is none."""
    try:
        with console.open("rb") as file:
            file.seek(max(0, console.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return redact("\n".join(text.splitlines()[-_TAIL_LINES:]))
