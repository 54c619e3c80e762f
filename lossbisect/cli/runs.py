"""``lossbisect runs``."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.options import json_option
from lossbisect.train.types import Lane, TrainerName

if TYPE_CHECKING:
    from lossbisect.store.store import RunStore

__all__ = ["command"]

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([mhdw])")
_SPAN_HOURS = {"m": 1 / 60, "h": 1, "d": 24, "w": 24 * 7}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(k|M|G|T)?B?", re.IGNORECASE)
_SIZE_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _span(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    found = _SPAN.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"'{value}' is no span of time. Examples: 12h, 30d, 8w")
    return timedelta(hours=float(found[1]) * _SPAN_HOURS[found[2]])


def _since(_context: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    found = _SPAN.fullmatch(value.strip())
    if found is not None:
        return datetime.now(UTC) - timedelta(hours=float(found[1]) * _SPAN_HOURS[found[2]])
    try:
        day = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"'{value}' is neither a date nor a span. Examples: 2026-11-30, 12h, 30d") from None
    return day if day.tzinfo else day.replace(tzinfo=UTC)


def _size(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"'{value}' is no size. Examples: 500MB, 2GB")
    return round(float(found[1]) * _SIZE_BYTES[(found[2] or "").upper()])


def _output_path(_context: click.Context, _parameter: click.Parameter, value: Path) -> Path:
    from lossbisect.report.log import FILE_KINDS

    if value.suffix not in FILE_KINDS:
        raise click.BadParameter(f"'{value}' must end in {', '.join(FILE_KINDS[:-1])} or {FILE_KINDS[-1]}.")
    return value


def _store() -> "RunStore":
    from lossbisect.store.store import RunStore
    from lossbisect.train import cache_directory

    return RunStore(cache_directory())


@click.group(epilog="Exit codes: those of its commands.")
def command() -> None:
    """List, show, export and prune the runs that are kept so that none is run twice.

    Example: lossbisect runs list --since 7d
    """


@command.command("list", epilog="Exit codes: 0, or 2 if the store can't be read.")
@click.option("--commit", metavar="SHA", help="Only runs of this commit of Megatron-LM; its first digits are enough.")
@click.option("--recipe", metavar="NAME|FILE", help="Only runs of this recipe.")
@click.option("--trainer", type=click.Choice([name.value for name in TrainerName]), help="Only runs by this trainer.")
@click.option("--lane", type=click.Choice([lane.value for lane in Lane]), help="Only runs on this lane.")
@click.option(
    "--since", callback=_since, metavar="DATE|SPAN", help="Only runs stored since then: 2026-11-30, 12h, 30d (UTC)."
)
@json_option
def list_runs(
    commit: str | None,
    recipe: str | None,
    trainer: str | None,
    lane: str | None,
    since: datetime | None,
    *,
    is_json: bool,
) -> int:
    """List the stored runs, the newest last.

    Example: lossbisect runs list --commit 0a438ed --lane cpu
    """
    from lossbisect.report.runs import runs_json, runs_table
    from lossbisect.store.types import RunFilter

    store = _store()
    chosen = RunFilter(
        commit=commit,
        recipe=recipe,
        trainer=TrainerName(trainer) if trainer else None,
        lane=Lane(lane) if lane else None,
        since=since,
    )
    runs = store.runs(chosen)
    if is_json:
        click.echo(runs_json(runs))
    elif runs:
        click.echo(runs_table(runs))
    else:
        which = "no run" if chosen == RunFilter() else "no such run"
        click.echo(f"{store.file}: {which}. 'lossbisect bisect' and 'lossbisect run --commit' store theirs.", err=True)
    return 0


@command.command("show", epilog="Exit codes: 0, or 2 if there is no such run.")
@click.argument("name", metavar="RUN")
@json_option
def show(name: str, *, is_json: bool) -> int:
    """Show what a run was, what it ran on, its first iterations and its files. RUN is an id or a part of one.

    Example: lossbisect runs show 8b4e2f
    """
    from lossbisect.errors import ParseError
    from lossbisect.report.runs import run_page, runs_json
    from lossbisect.train import read_run

    run = _store().find(name)
    if is_json:
        click.echo(runs_json([run]))
        return 0
    try:
        log = read_run(run.record)
    except ParseError:
        log = None  # a failed run may have recorded nothing
    click.echo(run_page(run, log))
    return 0


@command.command("export", epilog="Exit codes: 0, or 2 if there is no such run, or the file can't be written.")
@click.argument("name", metavar="RUN")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_output_path,
    metavar="FILE.parquet|csv|json|ndjson",
    help="Where the rows go.",
)
def export(name: str, output: Path) -> int:
    """Write every value that a run recorded, at full precision.

    Example: lossbisect runs export 8b4e2f -o run.parquet
    """
    from lossbisect.report.log import write
    from lossbisect.train import read_run

    run = _store().find(name)
    write(read_run(run.record).iterations, output)
    click.echo(f"Wrote {output}.", err=True)
    return 0


@command.command("prune", epilog="Exit codes: 0, 1 if you said no, 2 if the store can't be written.")
@click.option("--older-than", callback=_span, metavar="SPAN", help="Remove what was stored longer ago: 12h, 30d, 8w.")
@click.option(
    "--max-size", callback=_size, metavar="SIZE", help="Remove the oldest runs until the rest is no larger: 500MB, 2GB."
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of each recipe, trainer and lane keep the newest N runs only.",
)
@click.option("--yes", "is_yes", is_flag=True, help="Don't ask.")
def prune(older_than: timedelta | None, max_size: int | None, keep: int | None, *, is_yes: bool) -> int:
    """Delete stored runs; without limits only what is of no use: runs put aside, and what killed processes left.

    It says first what goes. Nothing outside the store is touched: bisects and run folders have files of their own.

    Example: lossbisect runs prune --older-than 90d
    """
    import shutil
    import sys

    from lossbisect.report.runs import runs_table, size_text
    from lossbisect.store.prune import to_prune

    store = _store()
    runs = store.runs()
    gone = to_prune(runs, now=datetime.now(UTC), older_than=older_than, max_bytes=max_size, keep=keep)
    orphans = store.orphans()
    if not gone and not orphans:
        click.echo(f"Nothing to remove: {len(runs):,} runs stay.", err=True)
        return 0
    if gone:
        click.echo(runs_table(gone), err=True)
    for path, size_bytes in orphans:
        click.echo(f"{path} ({size_text(size_bytes)}): left by a process that was killed", err=True)
    total = sum(run.size_bytes for run in gone) + sum(size_bytes for _, size_bytes in orphans)
    if not is_yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody is there to agree. Add --yes.")
        if not click.confirm(f"Delete {size_text(total)}?", err=True):
            return 1
    store.remove(gone)
    for path, _ in orphans:
        shutil.rmtree(path, ignore_errors=True)
    click.echo(f"Removed {len(gone):,} runs, {size_text(total)}; {len(runs) - len(gone):,} stay.", err=True)
    return 0
