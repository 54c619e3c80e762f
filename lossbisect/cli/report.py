"""``lossbisect report``."""

from pathlib import Path

import click

from lossbisect.cli.log_options import command_line, page_path

__all__ = ["bisect_argument", "command", "repo_option", "work_dir_option", "write_report_page"]

bisect_argument = click.argument("bisect_id", metavar="[BISECT]", required=False)
repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Without BISECT: take the latest one of this checkout.  [default: the latest one of any]",
)
work_dir_option = click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the bisect was started.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache directory]",
)


@click.command(epilog="Exit codes: 0 the page was written, 2 wrong usage or a failure of lossbisect itself.")
@bisect_argument
@repo_option
@work_dir_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=page_path,
    metavar="FILE.html",
    help="Where the page goes.  [default: report.html in the bisect's own folder]",
)
def command(bisect_id: str | None, repo: Path | None, work_dir: Path | None, output: Path | None) -> int:
    """Write the page of a bisect again from what it left on the disk. Nothing is run.

    BISECT is the id that `bisect` named, by default the latest one. One that is running or was stopped gets a page that
    says how far it is.

    Example: lossbisect report 20261130-133506-a2ea -o report.html
    """
    click.echo(write_report_page(bisect_id, repo, work_dir, output))
    return 0


def write_report_page(bisect_id: str | None, repo: Path | None, work_dir: Path | None, output: Path | None) -> Path:
    """Write the page of a bisect, and return where it is."""
    from lossbisect.bisect.recall import recall_bisect
    from lossbisect.report.html.bisect import write_bisect_page

    bisect = recall_bisect(bisect_id, repo=repo, work_dir=work_dir)
    path = output or bisect.directory / "report.html"
    write_bisect_page(bisect, path, command_line())
    return path
