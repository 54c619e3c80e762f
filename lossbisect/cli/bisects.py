"""``lossbisect bisect status``, ``log``, ``replay``, ``undo`` and ``abort``: bisects that are there."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.bisect.scope import StageKind
from lossbisect.bisect.state import find_bisect, work_root

if TYPE_CHECKING:
    from lossbisect.bisect.manage import BisectState

__all__ = ["COMMANDS"]

_work_dir = click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where bisects are kept.  [default: $LOSSBISECT_CACHE_DIR, or the user's cache directory]",
)
_bisect_id = click.argument("bisect_id", metavar="[ID]", required=False)


@click.command("status")
@_bisect_id
@_work_dir
def status(bisect_id: str | None, work_dir: Path | None) -> int:
    """Say how every bisect stands, or one.

    Example: lossbisect bisect status
    """
    from lossbisect.bisect.manage import read_bisects
    from lossbisect.report.bisect import printable

    states = list(read_bisects(work_root(work_dir), bisect_id))
    for state in states:
        click.echo(printable(_line(state)))
    if not states:
        click.echo("No bisect yet.")
    return 0


@click.command("log")
@_bisect_id
@_work_dir
def log(bisect_id: str | None, work_dir: Path | None) -> int:
    """Print a bisect's plan and runs, for people and for 'replay'; the latest one if no ID is given.

    Example: lossbisect bisect log > bisect.log
    """
    from lossbisect.bisect.manage import log_text, read_bisects
    from lossbisect.report.plain import printable

    root = work_root(work_dir)
    for state in read_bisects(root, find_bisect(root, bisect_id, None)):
        click.echo(printable(log_text(state)), nl=False)  # its JSON is ASCII, and stays as it is
    return 0


@click.command("replay")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_work_dir
def replay(file: Path, work_dir: Path | None) -> int:
    """Start a bisect from the lines of 'log', without the runs whose lines were deleted.

    Example: lossbisect bisect replay bisect.log
    """
    from lossbisect.bisect.manage import replay as replay_log
    from lossbisect.report.bisect import resume_command

    bisect_id = replay_log(work_root(work_dir), file.read_text(encoding="utf-8", errors="replace"), file)
    click.echo(f"Go on with: {resume_command(bisect_id, work_dir)}")
    return 0


@click.command("undo")
@_bisect_id
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True, help="How many of the last runs.")
@_work_dir
def undo(bisect_id: str | None, runs: int, work_dir: Path | None) -> int:
    """Take the last runs back, so that they are run again when the bisect goes on.

    Example: lossbisect bisect undo --runs 2
    """
    from lossbisect.bisect.manage import read_bisects
    from lossbisect.bisect.manage import undo as take_back
    from lossbisect.bisect.terms import terms_of
    from lossbisect.report.bisect import resume_command

    root = work_root(work_dir)
    found = find_bisect(root, bisect_id, None)
    terms = terms_of(next(read_bisects(root, found)).plan.search)
    for step in take_back(root, found, runs):
        click.echo(f"Took back {terms.role(step.role)}: {step.commit[:10]} {terms.verdict(step.verdict)}")
    click.echo(f"Go on with: {resume_command(found, work_dir)}")
    return 0


@click.command("abort")
@click.argument("bisect_id", metavar="ID")
@_work_dir
def abort(bisect_id: str, work_dir: Path | None) -> int:
    """Give a bisect up: '--resume' passes it over. Its journal and runs stay.

    Example: lossbisect bisect abort 20260822-152222-1a2b
    """
    from lossbisect.bisect.manage import abort as give_up

    root = work_root(work_dir)
    click.echo(f"Given up; journal and runs are kept in {give_up(root, find_bisect(root, bisect_id, None))}")
    return 0


def _line(state: "BisectState") -> str:
    from lossbisect.bisect.terms import terms_of

    how = "running" if state.is_running else "given up" if state.is_aborted else "stopped or finished"
    terms = terms_of(state.plan.search)
    last = f", last {state.steps[-1].commit[:10]} {terms.verdict(state.steps[-1].verdict)}" if state.steps else ""
    plan = state.plan
    kind = plan.stage.kind
    stage = "" if kind is StageKind.RANGE else f"  {kind.value}"
    return (
        f"{state.id}  {plan.good[:10]}..{plan.bad[:10]}{stage}  {plan.recipe}  {plan.trainer.value}/{plan.lane.value}  "
        f"{len(state.steps)} runs{last}  {how}  {plan.repo}"
    )


COMMANDS = (status, log, replay, undo, abort)
