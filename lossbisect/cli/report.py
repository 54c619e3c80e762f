"""``lossbisect report``."""

from pathlib import Path

import click

from lossbisect.cli.log_options import command_line, page_path

__all__ = ["command", "repo_option", "subject_argument", "work_dir_option"]

subject_argument = click.argument("name", metavar="[BISECT|RUN|TRIAGE]", required=False)
repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Without a name: take the latest bisect of this checkout.  [default: the latest one of any]",
)
work_dir_option = click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the bisect was started.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache directory]",
)


@click.command(epilog="Exit codes: 0 the report was made, 2 wrong usage or a failure of lossbisect itself.")
@subject_argument
@repo_option
@work_dir_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=page_path,
    metavar="FILE.html",
    help="Where the page goes.  [default: report.html in the folder of the bisect or triage; for a run the folder "
    "'reports' of the cache directory]",
)
@click.option("--text", "is_text", is_flag=True, help="Print the report as text instead.  [default: a page]")
def command(name: str | None, repo: Path | None, work_dir: Path | None, output: Path | None, *, is_text: bool) -> int:
    """Make the report of a bisect, a stored run or a triage again from what it left on the disk. Nothing is run.

    The name is a bisect's id, or a part of the id of a run ('lossbisect runs list') or of a triage; by default the
    latest bisect. A bisect that is running or was stopped gets a report that says how far it is.

    Example: lossbisect report 20261130-133506-a2ea -o report.html
    """
    from lossbisect.report.stored import find_subject, subject_text, write_subject_page

    if is_text and output is not None:
        raise click.UsageError("--text prints; -o writes a page. Choose one.")
    subject = find_subject(name, repo=repo, work_dir=work_dir)
    click.echo(subject_text(subject) if is_text else write_subject_page(subject, output, command_line()))
    return 0
