"""``lossbisect triage``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.keep import store_options
from lossbisect.cli.number import Number
from lossbisect.cli.options import json_option, python_option, timeout_option

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse
    from lossbisect.triage.types import TriageReport

__all__ = ["command"]


def _report_paths(_context: click.Context, _parameter: click.Parameter, files: tuple[Path, ...]) -> tuple[Path, ...]:
    from lossbisect.report.triage_files import FORMATS

    for file in files:
        if file.suffix.lower() not in FORMATS:
            raise click.BadParameter(f"'{file.name}' must end in one of {', '.join(FORMATS)}.")
        if not file.absolute().parent.is_dir():
            raise click.BadParameter(f"The folder '{file.parent}' does not exist.")
    return files


@click.command(
    epilog="Exit codes: 0 the loss is the same, or moved by the environment or on purpose; 1 it moved; 3 nothing is "
    "sure (flaky, broken, undecided); 2 wrong usage or a failure of lossbisect itself."
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron-LM or Megatron Bridge checkout. Only read.",
)
@click.option(
    "--commit",
    metavar="COMMIT",
    help="Commit of Megatron-LM in question, or bridge:REV for Bridge at REV and what it pins.  [default: HEAD]",
)
@click.option(
    "--range",
    "commits",
    metavar="A..B",
    help="Judge B against A, instead of against the nearest commit of the history.",
)
@click.option("--since-last", is_flag=True, help="Judge HEAD, unless the history has it: then there is nothing to do.")
@click.option(
    "--suite",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What is trained, see docs/triage.md.  [default: lossbisect.toml of the checkout, or else one dense recipe on "
    "the lane cpu]",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    callback=_report_paths,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report there too, by its ending: .md, .json, .xml (JUnit), .sarif, .html, .txt. Repeatable.",
)
@click.option(
    "--step-summary", "is_step_summary", is_flag=True, help="Add it to the summary of a GitHub workflow step."
)
@click.option(
    "--notify",
    "notify_command",
    metavar="COMMAND",
    help="Run this with the report on its standard input when there is news; Markdown, with --json JSON.",
)
@click.option("--follow", is_flag=True, help="Go on with each new commit until interrupted, also in a bare repository.")
@click.option(
    "--interval",
    type=Number(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: time between two looks at the repository.",
)
@python_option
@timeout_option
@json_option
@store_options
def command(
    repo: Path,
    commit: str | None,
    commits: str | None,
    suite: Path | None,
    python: Path | None,
    timeout: float | None,
    store: "StoreUse",
    reports: tuple[Path, ...],
    notify_command: str | None,
    interval: float,
    *,
    follow: bool,
    is_step_summary: bool,
    since_last: bool,
    is_json: bool,
) -> int:
    """Say what the newest commit did to the loss, and if it moved, whose commit moved it.

    One short training if nothing moved. If something did, the commit and the one before it are run again in today's
    environment, and only the suspect range is bisected.

    Example: lossbisect triage --repo ~/Megatron-LM --since-last
    """
    from lossbisect.cli.console import interruptible, iteration_lines
    from lossbisect.report.plain import printable
    from lossbisect.train.defaults import DEFAULT_TIMEOUT_S
    from lossbisect.triage.run import triage

    if sum((commit is not None, commits is not None, since_last, follow)) > 1:
        raise click.UsageError("--commit, --range, --since-last and --follow exclude each other.")
    reference, tip = (None, "HEAD" if commit is None else commit) if commits is None else _ends(commits)

    def say(text: str) -> None:
        click.echo(printable(text), err=True)

    def judge() -> "TriageReport | None":
        return triage(
            repo,
            commit=tip,
            reference=reference,
            since_last=since_last or follow,
            suite=suite,
            python=python,
            timeout_s=timeout or DEFAULT_TIMEOUT_S,
            store=store,
            say=say,
            on_line=iteration_lines(),
        )

    with interruptible():
        while True:
            report = judge()
            if report is not None:
                _deliver(report, reports, notify_command, is_json=is_json, is_step_summary=is_step_summary)
            elif not follow:
                say("Nothing is new since the last triage.")
            if not follow:
                return report.exit_code if report is not None else 0
            time.sleep(interval)


def _ends(commits: str) -> tuple[str, str]:
    older, dots, newer = commits.partition("..")
    if not (older and dots and newer.lstrip(".")):
        raise click.UsageError(f"'{commits}' names no two commits. Write them as A..B, the older one first.")
    return older, newer.lstrip(".")


def _deliver(
    report: "TriageReport",
    files: tuple[Path, ...],
    notify_command: str | None,
    *,
    is_json: bool,
    is_step_summary: bool,
) -> None:
    from lossbisect.report.triage import triage_json, triage_text
    from lossbisect.report.triage_files import add_step_summary, triage_markdown, write_triage
    from lossbisect.triage.notify import notify

    click.echo(triage_json(report) if is_json else triage_text(report))
    for file in files:
        write_triage(report, file)
        click.echo(f"Wrote {file}", err=True)
    if is_step_summary:
        add_step_summary(report)
    if notify_command and report.is_news:
        complaint = notify(notify_command, triage_json(report) if is_json else triage_markdown(report))
        if complaint:
            click.echo(complaint, err=True)
