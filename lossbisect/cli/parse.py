"""``lossbisect parse``."""

import glob
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.errors import LossbisectError

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["command"]

_FAILURE = 2
_MOST_NOTES = 5


def _output_path(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a file that couldn't be written before any log is read."""
    from lossbisect.report.log import FILE_KINDS

    if value is not None and value.suffix not in FILE_KINDS:
        raise click.BadParameter(f"'{value}' must end in {', '.join(FILE_KINDS[:-1])} or {FILE_KINDS[-1]}.")
    return value


def _print_formats(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from lossbisect.parsers import FORMATS

        for name, what in FORMATS.items():
            click.echo(f"{name:16} {what}")
        context.exit()


@click.command(epilog="Exit codes: 0 read, 2 wrong usage or a file that can't be read.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_output_path,
    metavar="FILE.parquet|csv|json|ndjson",
    help="Write all rows and columns into this file instead of a table.  [default: a table]",
)
@click.option("--columns", metavar="NAME,...", help="Columns to show or write.  [default: the usual ones; with -o all]")
@click.option("--notes", is_flag=True, help="Show every note: what was repaired, left out or cut, by line.")
@click.option("--config", is_flag=True, help="Show the configuration that the log dumps instead of the rows.")
@click.option("--summary", is_flag=True, help="Show a summary only.")
@click.option("--join", is_flag=True, help="Read the files as parts of one log, in the order given.")
@click.option(
    "--formats", is_flag=True, is_eager=True, expose_value=False, callback=_print_formats, help="List what can be read."
)
def command(
    logs: tuple[str, ...],
    output: Path | None,
    columns: str | None,
    *,
    notes: bool,
    config: bool,
    summary: bool,
    join: bool,
) -> int:
    """Read training logs and show their rows. LOG may be a file, a folder of event files, a pattern, or - for stdin.

    Example: lossbisect parse train.log -o train.parquet
    """
    from lossbisect.parsers import read_log

    paths = [path for log in logs for path in _expand(log)]
    names = [name.strip() for name in columns.split(",") if name.strip()] if columns else []
    read: list[RunLog] = []
    has_failed = False
    for parts in [paths] if join else [[path] for path in paths]:
        try:
            log = read_log(*parts)
            if output is None:
                _show(log, names, has_notes=notes, has_config=config, is_summary=summary)
        except LossbisectError as error:
            if len(paths) == 1 or join:
                raise
            click.echo(f"Error: {error}", err=True)
            has_failed = True
        else:
            read.append(log)
    if output is not None and read:
        _write(read, names, output, has_notes=notes)
    return _FAILURE if has_failed else 0


def _expand(log: str) -> list[str]:
    """A pattern's files in order; anything else as it is, so that a file that isn't there is named."""
    if log == "-" or Path(log).exists():
        return [log]
    return sorted(glob.glob(log, recursive=True)) or [log]  # noqa: PTH207


def _show(log: "RunLog", names: list[str], *, has_notes: bool, has_config: bool, is_summary: bool) -> None:
    import shutil
    import sys

    from lossbisect.report.log import pick_columns, render_config, render_notes, render_summary, render_table

    click.echo(render_summary(log))
    if has_config:
        click.echo(render_config(log) or "no configuration dumped")
    elif not is_summary and log.iterations.height:
        width = shutil.get_terminal_size().columns
        click.echo(render_table(pick_columns(log.iterations, names, width), is_whole=not sys.stdout.isatty()))
    if log.notes:
        click.echo(render_notes(log, None if has_notes else _MOST_NOTES))


def _write(logs: "list[RunLog]", names: list[str], output: Path, *, has_notes: bool) -> None:
    import polars as pl

    from lossbisect.report.log import pick_columns, render_notes, render_summary, write

    frames = [pick_columns(log.iterations, names or log.iterations.columns) for log in logs]
    if len(logs) > 1:
        frames = [
            frame.select(pl.lit(str(log.path)).alias("log"), pl.all()) for frame, log in zip(frames, logs, strict=True)
        ]
    write(pl.concat(frames, how="diagonal"), output)
    for log in logs:
        click.echo(render_summary(log), err=True)
        if log.notes:
            click.echo(render_notes(log, None if has_notes else _MOST_NOTES), err=True)
    click.echo(f"Wrote {output}.", err=True)
