"""``lossbisect open``."""

import os
import sys
from pathlib import Path

import click

from lossbisect.cli.log_options import command_line
from lossbisect.cli.report import repo_option, subject_argument, work_dir_option

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 shown, or written where there is no display; 2 wrong usage or a failure.")
@subject_argument
@repo_option
@work_dir_option
def command(name: str | None, repo: Path | None, work_dir: Path | None) -> int:
    """Show the report of a bisect, a stored run or a triage in the browser, by default of the latest bisect.

    Its page is written first and its path printed; where there is no display that is all.

    Example: lossbisect open
    """
    import webbrowser

    from lossbisect.report.stored import find_subject, write_subject_page

    path = write_subject_page(find_subject(name, repo=repo, work_dir=work_dir), None, command_line())
    click.echo(path)
    if not _has_display() or not webbrowser.open(path.resolve().as_uri()):
        click.echo("There is no browser to show it in here. 'lossbisect serve' shows it to one elsewhere.", err=True)
    return 0


def _has_display() -> bool:
    """On Linux a browser in a window needs one; without one a text browser would take the terminal over."""
    return sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
