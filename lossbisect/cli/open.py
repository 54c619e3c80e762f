"""``lossbisect open``."""

from pathlib import Path

import click

from lossbisect.cli.report import bisect_argument, repo_option, work_dir_option, write_report_page

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 shown, 2 wrong usage, a failure of lossbisect itself, or no browser.")
@bisect_argument
@repo_option
@work_dir_option
def command(bisect_id: str | None, repo: Path | None, work_dir: Path | None) -> int:
    """Write the page of a bisect and show it in the browser. BISECT is its id, by default the latest one.

    Example: lossbisect open
    """
    import webbrowser

    path = write_report_page(bisect_id, repo, work_dir, None)
    click.echo(path)
    if not webbrowser.open(path.resolve().as_uri()):
        click.echo("Error: no browser could be started here. Open the file above in one.", err=True)
        return 2
    return 0
