"""``lossbisect ack``."""

from pathlib import Path

import click

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 written down, 2 wrong usage or a failure of lossbisect itself.")
@click.argument("commit")
@click.option("--reason", required=True, metavar="TEXT", help="Why the loss is meant to have moved.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="The checkout that holds the commit. Only read.",
)
def command(commit: str, reason: str, repo: Path) -> int:
    """Say that a commit was meant to move the loss: 'triage' judges later ones against its curve.

    Example: lossbisect ack 8a03b29cca --reason "new initialisation of the router"
    """
    from lossbisect.report.plain import printable
    from lossbisect.triage.run import acknowledge

    if not reason.strip():
        raise click.UsageError("--reason is empty. Whoever reads it in a year wants to know why.")
    given = acknowledge(repo, commit, reason.strip())
    click.echo(printable(f"Acknowledged {given.commit[:10]}, by {given.by}: {given.reason}"))
    return 0
