"""``lossbisect doctor``."""

import sys
from pathlib import Path

import click

from lossbisect.cli.options import json_option, python_option

__all__ = ["command"]

_COLOURS = {"PROBLEMS": "red", "WARNINGS": "yellow", "OK": "green"}


@click.command(epilog="Exit codes: 0 no problems, 1 problems found, 2 wrong usage or a failure of lossbisect itself.")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--at",
    metavar="COMMIT",
    help="Commit of the checkout whose versions count, read from its own files without checking it out.  [default: "
    "HEAD]",
)
@python_option
@json_option
def command(path: Path | None, at: str | None, python: Path | None, *, is_json: bool) -> int:
    """Look for what makes a run something else than it seems to be, and say how to mend it.

    PATH is a Megatron Bridge or Megatron-LM checkout, the current folder if it isn't given. Looked at are its commits
    and changed files, left experiments, packages that shadow it, versions, disk, GPUs, Slurm and environment variables.
    Nothing is changed, and no torch is imported.

    Example: lossbisect doctor ~/Megatron-Bridge --at v0.6.0
    """
    from lossbisect.assist.doctor import examine
    from lossbisect.assist.findings import Severity, worst

    found = examine(
        path or Path(),
        python=python or Path(sys.executable),
        is_python_named=python is not None,
        at=at,
        needs_checkout=path is not None,
    )
    if is_json:
        from lossbisect.report.compat import together_object
        from lossbisect.report.findings import findings_json

        asked = together_object(found.together) if found.together else None
        click.echo(findings_json(found.findings, asked_for=asked))
    else:
        from lossbisect.report.findings import findings_text

        head, colon, rest = findings_text(found.findings).partition(":")
        click.echo(click.style(head, fg=_COLOURS[head], bold=True) + colon + rest)
    return 1 if worst(found.findings) is Severity.PROBLEM else 0
