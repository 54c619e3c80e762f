"""What a command shows on stderr while a trainer runs."""

import click

__all__ = ["iteration_lines"]


def iteration_lines(line: str) -> None:
    """Show a trainer's line if it is an iteration's row: a run without a sign of life looks hung."""
    if " iteration " in line and "|" in line:
        click.echo(line.strip(), err=True)
