"""Reports made again from what is stored: of a bisect, of a run, of a triage. Nothing is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.recall import Unfinished, recall_bisect
from lossbisect.bisect.state import work_root
from lossbisect.errors import LossbisectError, StoreError
from lossbisect.store.types import StoredRun
from lossbisect.train.types import RunRecord
from lossbisect.triage.types import TriageReport

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["KeptTriage", "Subject", "curves_of", "find_subject", "run_facts", "subject_text", "write_subject_page"]


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTriage:
    """A triage's report and where it is kept.

    Attributes:
        id: Its name.
        folder: Its folder.
        report: What was said.
    """

    id: str
    folder: Path
    report: TriageReport


type Subject = BisectResult | Unfinished | StoredRun | KeptTriage
"""What a report can be about."""


def find_subject(name: str | None, *, repo: Path | None = None, work_dir: Path | None = None) -> Subject:
    """What a name means: a bisect's id, or a part of the id of a stored run or a triage; without one the latest bisect.

    Args:
        name: The name; None: the latest bisect.
        repo: Without a name: of this checkout.
        work_dir: The cache directory, where it isn't the usual one.

    Raises:
        StateError: There is no such bisect, or it can't be read.
        StoreError: The name is none, or may mean several.
    """
    root = work_root(work_dir)
    bisects = {path.parent.name for path in (root / "bisects").glob("*/journal.ndjson")}
    if name is None or name in bisects:
        return recall_bisect(name, repo=repo, work_dir=work_dir)
    from lossbisect.store.store import RunStore
    from lossbisect.triage.saved import find_report, read_report

    triage = find_report(root, name)
    if triage is not None:
        return KeptTriage(id=triage, folder=root / "triage" / triage, report=read_report(root, triage))
    store = RunStore(root)
    try:
        return store.find(name)
    except StoreError as error:
        if "may be any of" in str(error):
            raise
        raise StoreError(
            f"{root}: no bisect, run or triage '{name}'. 'lossbisect bisect status' and 'lossbisect runs list' show "
            "what is there."
        ) from error


def subject_text(subject: Subject) -> str:
    """The report for a terminal, without a final newline."""
    match subject:
        case StoredRun():
            from lossbisect.report.runs import run_page

            return run_page(subject, curves_of(subject.record))
        case KeptTriage():
            from lossbisect.report.triage import triage_text

            return triage_text(subject.report)
        case Unfinished():
            from lossbisect.report.unfinished import unfinished_text

            return unfinished_text(subject)
        case _:
            from lossbisect.report.bisect import bisect_text

            return bisect_text(subject)


def write_subject_page(subject: Subject, path: Path | None, arguments: Sequence[str]) -> Path:
    """Write the report as a page, and return where it is.

    Args:
        subject: What it is about.
        path: The page's file; None: in the folder of the bisect or triage, for a run in ``reports`` beside the store.
        arguments: The words after ``lossbisect`` of the command that asked for it.

    Raises:
        LossbisectError: It can't be written.
    """
    from lossbisect.report.html.origin import again, origin_of, write_page

    match subject:
        case StoredRun():
            from lossbisect.report.html.bisect import tail_of
            from lossbisect.report.html.run import run_page

            target = path or subject.record.out.parents[1] / "reports" / f"run-{subject.id}.html"
            origin = origin_of(arguments, sorted(subject.record.out.glob("*")))
            page = run_page(
                subject.record,
                curves_of(subject.record),
                tail_of(subject.record.console),
                name=subject.id,
                facts=run_facts(subject),
                once_more=again(origin, f"lossbisect runs show {subject.id}"),
            )
        case KeptTriage():
            from lossbisect.report.html.triage import triage_page

            target, page = path or subject.folder / "report.html", triage_page(subject.report)
        case _:
            from lossbisect.report.html.bisect import page_of

            target = path or subject.directory / "report.html"
            page = page_of(subject, origin_of(arguments, [subject.directory / "journal.ndjson"]))
    if path is None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LossbisectError(f"{target.parent}: can't be made: {error.strerror}. Name a file by -o.") from error
    write_page(page, target)
    return target


def run_facts(run: StoredRun) -> dict[str, str]:
    """What the store knows of a run besides its record."""
    aside = ", put aside: later runs of the same set-up gave other numbers" if run.is_stale else ""
    return {
        "stored": f"{run.added_at:%Y-%m-%d %H:%M} UTC, repetition {run.repetition}{aside}",
        "environment": run.environment.digest[:10],
    }


def curves_of(record: RunRecord) -> "RunLog | None":
    """What a run recorded; None if that is nothing that can be read."""
    from lossbisect.train import read_run

    try:
        return read_run(record)
    except (LossbisectError, OSError):
        return None
