"""``lossbisect demo``."""

import sys
import tempfile
import time
from pathlib import Path

import click

from lossbisect.cli.options import command_line, jobs_option, python_option

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 the planted commit was named, 1 it wasn't, 2 a failure of lossbisect itself.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the planted commit and its place.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the repository and the report go; new or empty.  [default: a new temporary directory]",
)
@python_option
@jobs_option
def command(seed: int, folder: Path | None, python: Path | None, jobs: int | None) -> int:
    """Bisect a made-up history of real Megatron-Core, on this machine's CPU.

    Lays out a Megatron Bridge repository from the installed packages. The history of its Megatron-LM submodule starts
    with the released Megatron-Core and goes on with commits that are made up; one of them changes the loss. The
    bisect isn't told which.

    Example: lossbisect demo --seed 7
    """
    from lossbisect.bisect import bisect_range
    from lossbisect.bisect.training import Training
    from lossbisect.cli.progress import progress
    from lossbisect.demo import make_history
    from lossbisect.errors import TrainerError
    from lossbisect.report.bisect import bisect_text, write_report
    from lossbisect.report.html.bisect import write_bisect_page
    from lossbisect.store.runner import StoreUse
    from lossbisect.train.executors import ExecutorOptions

    interpreter = python or Path(sys.executable)
    folder = folder or Path(tempfile.mkdtemp(prefix="lossbisect-demo-"))
    if folder.exists() and any(folder.iterdir()):
        raise TrainerError(f"{folder}: not empty. Name a new folder for the demo.")
    started_s = time.monotonic()
    click.echo(f"Laying out Megatron Bridge and a history of Megatron-Core in {folder}", err=True)
    history = make_history(folder, interpreter, seed=seed)
    ends = f"--good {history.good} --bad {history.bad}"
    click.echo(f"$ lossbisect bisect --repo {history.repo} {ends}", err=True)
    with progress() as show:
        result = bisect_range(
            history.repo,
            history.good,
            history.bad,
            training=Training(python=interpreter),
            work_dir=folder / "work",
            on_event=show,
            executor=ExecutorOptions(jobs=jobs),
            store=StoreUse.OFF,
        )
    click.echo(bisect_text(result))
    reports = write_report(result, folder / "report")
    page = folder / "report" / "report.html"
    write_bisect_page(result, page, command_line())
    for path in (page, *reports):
        click.echo(f"Wrote {path}", err=True)
    named = result.culprit.commit.sha if result.culprit else None
    spent = f"{time.monotonic() - started_s:.0f} s for {history.commits} commits"
    if named == history.planted:
        click.echo(f"\nThis is the commit that the demo had planted. {spent}.")
        return 0
    click.echo(f"\nThe demo had planted {history.planted}, and the bisect did not name it. {spent}.")
    return 1
