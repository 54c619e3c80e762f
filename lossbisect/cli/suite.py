"""``lossbisect suite``."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.keep import store_options
from lossbisect.cli.options import (
    commit_option,
    lane_option,
    out_option,
    python_option,
    repo_option,
    timeout_option,
    trainer_option,
)
from lossbisect.cli.place import Place, place_options

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse
    from lossbisect.train.types import RunRecord

__all__ = ["command"]


@click.group(epilog="Exit codes: those of its commands.")
def command() -> None:
    """Run several correlation recipes one after another.

    Example: lossbisect suite run quick --repo ~/Megatron-LM --trainer core
    """


@command.command("list", epilog="Exit codes: 0.")
def list_suites() -> int:
    """List the built-in suites with their recipes.

    Example: lossbisect suite list
    """
    from lossbisect.train.suites import built_in_suites, load_suite

    for name in built_in_suites():
        suite = load_suite(name)
        click.echo(f"{name}: {suite.description}\n  {' '.join(suite.recipes)}")
    return 0


@command.command(
    "run",
    epilog="Exit codes: 0 every training finished, 1 one failed, timed out, or ran other code than asked for, 2 wrong "
    "usage or a failure of lossbisect itself.",
)
@click.argument("name", metavar="NAME|FILE")
@repo_option
@commit_option
@trainer_option
@lane_option
@python_option
@timeout_option
@out_option
@place_options
@store_options
def run(
    name: str,
    repo: Path | None,
    commit: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    timeout: float | None,
    out: Path | None,
    place: Place,
    store: "StoreUse",
) -> int:
    """Train each recipe of a suite once, in its own process and folder, and print a line for each.

    Example: lossbisect suite run quick --repo ~/Megatron-LM --commit core_v0.15.0 --trainer core
    """
    from lossbisect.bisect.planning import RunsPlan, command_text, cost_of, plan_text
    from lossbisect.bisect.sources import sources_of
    from lossbisect.cli.console import interruptible, iteration_lines
    from lossbisect.store.runner import StoredExecutor, StoredRuns
    from lossbisect.train.defaults import run_spec
    from lossbisect.train.executors import open_executor
    from lossbisect.train.run import cache_directory, fresh_directory, new_run_directory
    from lossbisect.train.suites import load_suite
    from lossbisect.train.types import Lane, Outcome, TrainerName

    suite = load_suite(name)
    out = out or new_run_directory()
    with (
        interruptible(),
        closing(open_executor(place.executor)) as executor,
        sources_of(repo, commit, out.with_name(f"{out.name}-trees")) as sources,
    ):
        specs = [
            run_spec(
                sources,
                recipe=recipe,
                trainer=TrainerName(trainer) if trainer else None,
                lane=Lane(lane),
                python=python,
                timeout_s=timeout,
                executor=place.executor,
            )
            for recipe in suite.recipes
        ]
        suite.check(specs[0].trainer)
        cost = cost_of(specs[0], len(specs), place.executor, cache_directory())
        if place.is_plan:
            commands = tuple(command_text(spec, place.executor) for spec in specs)
            click.echo(plan_text(RunsPlan(cost=cost, commands=commands)))
            return 0
        place.agree(cost)
        out = fresh_directory(out)
        through_store = StoredExecutor(executor, StoredRuns(cache_directory(), store))
        width = max(len(spec.recipe) for spec in specs)
        is_whole = True
        for number, spec in enumerate(specs, start=1):
            folder = out / f"{number:02}-{Path(spec.recipe).stem}"
            record = through_store.run(spec, folder, on_line=iteration_lines(spec.recipe))
            click.echo(f"{spec.recipe:{width}}  {_line(record)}")
            is_whole = is_whole and record.outcome is Outcome.FINISHED
    click.echo(f"Curves and consoles: {out}", err=True)
    return 0 if is_whole else 1


def _line(record: "RunRecord") -> str:
    from lossbisect.train import read_run
    from lossbisect.train.types import Outcome

    if record.outcome is not Outcome.FINISHED:
        return f"{record.outcome.upper()} {record.duration_s:.0f} s: {record.reason}"
    losses = read_run(record).iterations["lm_loss"].drop_nulls()
    return f"{record.outcome} {record.duration_s:.0f} s: {record.reason}, lm loss {losses[0]!r} to {losses[-1]!r}"
