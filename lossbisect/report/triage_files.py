"""A triage written to files, each in the format that its name says."""

import os
from pathlib import Path

from lossbisect.errors import LossbisectError
from lossbisect.triage.types import TriageReport

__all__ = ["FORMATS", "add_step_summary", "triage_markdown", "write_triage"]

FORMATS = {
    ".md": "Markdown",
    ".json": "JSON",
    ".xml": "JUnit XML",
    ".sarif": "SARIF",
    ".html": "a page",
    ".txt": "text",
}
_SUMMARY = "GITHUB_STEP_SUMMARY"


def triage_markdown(report: TriageReport) -> str:
    """Markdown for a comment: text of logs and commits shows as it is, and an ``@name`` in it rings nobody."""
    from lossbisect.report.html.markdown import page_markdown
    from lossbisect.report.html.triage import triage_page

    return page_markdown(triage_page(report, is_whole=False))


def write_triage(report: TriageReport, file: Path) -> None:
    """Write a report in the format of the file's ending, one of `FORMATS`.

    Raises:
        LossbisectError: It can't be written.
    """
    try:
        file.write_text(_text(report, file.suffix.lower()), encoding="utf-8")
    except OSError as error:
        raise LossbisectError(f"{file}: the report can't be written: {error.strerror}. Name another file.") from error


def add_step_summary(report: TriageReport) -> None:
    """Add the Markdown to the summary of the running step of a GitHub workflow.

    Raises:
        LossbisectError: No workflow is running, or its file can't be written.
    """
    name = os.environ.get(_SUMMARY)
    if not name:
        raise LossbisectError(f"--step-summary: {_SUMMARY} isn't set, so this is no step of a GitHub workflow.")
    try:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(triage_markdown(report) + "\n")
    except OSError as error:
        raise LossbisectError(f"{name}: the step's summary can't be written: {error.strerror}.") from error


def _text(report: TriageReport, suffix: str) -> str:
    if suffix == ".md":
        return triage_markdown(report)
    if suffix == ".html":
        from lossbisect.report.html.render import page_html
        from lossbisect.report.html.triage import triage_page

        return page_html(triage_page(report))
    if suffix == ".xml":
        from lossbisect.report.junit import triage_junit

        return triage_junit(report)
    if suffix == ".sarif":
        from lossbisect.report.sarif import triage_sarif

        return triage_sarif(report)
    from lossbisect.report.triage import triage_json, triage_text

    return (triage_json(report) if suffix == ".json" else triage_text(report)) + "\n"
