"""``lossbisect compat``."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.options import json_option

if TYPE_CHECKING:
    from lossbisect.assist.compat import Together

__all__ = ["command"]


@click.command(epilog="Exit codes: 0, or 2 for wrong usage or a failure of lossbisect itself.")
@click.argument("commits", metavar="A..B")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout that has the commits. Only read.  [default: .]",
)
@json_option
def command(commits: str, repo: Path, *, is_json: bool) -> int:
    """Show which versions go together from commit A to commit B, as the commits' own files say.

    A and B are commits of the checkout: SHA, tag or branch; one commit alone is shown by itself. A row is a stretch of
    commits with equal versions of Bridge, Megatron-Core, Python, torch, CUDA and Transformer Engine; torch and
    Transformer Engine are those of uv.lock where there is one, and the image is NVIDIA's PyTorch image. JSON holds
    every commit that changes a pin.

    Example: lossbisect compat v0.6.0..main --repo ~/Megatron-Bridge
    """
    from lossbisect.assist.compat import compatibility, periods, together_at
    from lossbisect.report.compat import compat_json, compat_text

    first, dots, last = commits.partition("..")
    if dots and not (first and last.strip(".")):
        raise click.UsageError("Name both ends, such as v0.6.0..main, or one commit alone.")
    rows = tuple(_counted(compatibility(repo, first, last.lstrip(".")))) if dots else (together_at(repo, first),)
    click.echo(compat_json(rows) if is_json else compat_text(periods(rows)))
    return 0


def _counted(rows: "Iterable[Together]") -> "Iterator[Together]":
    """The same rows, with a count on a terminal meanwhile: a year of commits takes half a minute."""
    is_live = sys.stderr.isatty()
    for count, row in enumerate(rows, start=1):
        if is_live:
            click.echo(f"\r{count} commits read ({row.date[:10]})", nl=False, err=True)
        yield row
    if is_live:
        click.echo("\r\033[K", nl=False, err=True)
