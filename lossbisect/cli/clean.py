"""``lossbisect clean``."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lossbisect.assist.clean import Record
    from lossbisect.assist.experiments import Experiment

__all__ = ["command"]

LATEST = "latest"


@click.command(
    epilog="Exit codes: 0 moved, put back, or nothing to move; 1 you said no; 2 wrong usage or a failure of lossbisect "
    "itself, such as when something new is in the way of what is to be put back.",
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--yes", is_flag=True, help="Move without asking.  [default: ask]")
@click.option(
    "--restore",
    is_flag=False,
    flag_value=LATEST,
    metavar="[ID]",
    help="Put back what was moved, the latest of PATH if no ID is given.",
)
def command(paths: tuple[Path, ...], restore: str | None, *, yes: bool) -> int:
    """Move folders of earlier runs aside, so that a next run starts fresh. Nothing is deleted.

    PATH is a folder to look in, the current one if none is given: 'nemo_experiments' in it goes aside. An experiment
    or checkpoint folder of any other name goes aside when it is named itself. Folders are renamed into
    .lossbisect-aside beside where they were, with a record.

    Example: lossbisect clean ~/Megatron-Bridge
    """
    if restore is not None:
        if restore != LATEST and Path(restore).is_dir():  # '--restore PATH' means the latest of PATH
            paths, restore = (*paths, Path(restore)), LATEST
        return _restore(paths or (Path(),), restore)
    from lossbisect.assist.clean import move_aside, new_id
    from lossbisect.assist.experiments import find_experiments, located

    named = {located(path) for path in paths}
    found = find_experiments(paths or (Path(),))
    chosen = [item for item in found if item.is_default or item.path in named]
    others = [item for item in found if item not in chosen]
    for item in others:
        click.echo(f"Left alone: {_line(item)}. To move it, name it: lossbisect clean {item.path}", err=True)
    if not chosen:
        click.echo("Nothing to move: no folder of an earlier run that a next one would go on from by itself.")
        return 0
    _refuse(chosen)
    click.echo("To be moved aside:")
    for item in chosen:
        click.echo(f"  {_line(item)}")
    if not yes and not click.confirm("Move?", err=True):
        click.echo("Nothing was moved.")
        return 1
    record_id = new_id()
    records = move_aside(chosen, record_id)
    for record in records:
        for moved in record.items:
            click.echo(f"Moved {moved.origin} to {moved.aside}")
    where = " ".join(dict.fromkeys(str(record.file.parents[2]) for record in records))
    click.echo(f"Put it back with: lossbisect clean {where} --restore {record_id}")
    return 0


def _restore(paths: tuple[Path, ...], wanted: str) -> int:
    from lossbisect.assist.clean import find_records, restore
    from lossbisect.errors import StateError

    records = find_records(paths)
    where = ", ".join(map(str, paths))
    if not records:
        raise StateError(f"{where}: nothing was moved out of there, or all of it is back. Name the folder it was in.")
    record_id = records[-1].id if wanted == LATEST else wanted
    chosen = [record for record in records if record.id == record_id]
    if not chosen:
        ids = ", ".join(dict.fromkeys(record.id for record in records))
        raise StateError(f"{where}: no record {record_id}. There are: {ids}")
    for moved in restore(chosen):
        click.echo(f"Put back {moved.origin}")
    _say_rest([record for record in records if record.id != record_id])
    return 0


def _say_rest(records: "list[Record]") -> None:
    for record in records:
        for moved in record.items:
            if moved.is_aside:
                click.echo(f"Still aside: {moved.origin} (--restore {record.id})", err=True)


def _refuse(chosen: "list[Experiment]") -> None:
    """Refuse what a process of this machine still uses, and what git keeps."""
    from lossbisect.assist.clean import open_files, tracked_files
    from lossbisect.errors import StateError

    for item in chosen:
        if processes := open_files(item.path):
            told = ", ".join(map(str, processes))
            raise StateError(f"{item.path}: in use by process {told}. Stop the run first, or wait for its end.")
        if tracked_files(item.path):
            raise StateError(f"{item.path}: git keeps files of it, so it is no left-over. Nothing was moved.")


def _line(item: "Experiment") -> str:
    from lossbisect.assist.experiments import age_text, size_text

    files = "1 file" if item.files == 1 else f"{item.files} files"
    age = age_text(time.time() - item.changed_s)
    link = f", a link to {item.path.resolve()}" if item.path.is_symlink() else ""
    numbers = [str(iteration) for _, iteration in item.checkpoints if iteration is not None]
    at = f", checkpoint of iteration {', '.join(numbers[:3])}" if numbers else ""
    return f"{item.path}  {size_text(item.size_bytes)}, {files}, last changed {age} ago{at}{link}"
