"""``lossbisect run``."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.keep import store_options
from lossbisect.cli.options import (
    commit_option,
    json_option,
    lane_option,
    out_option,
    python_option,
    recipe_option,
    repo_option,
    timeout_option,
    trainer_option,
)
from lossbisect.cli.place import Place, place_options

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse

__all__ = ["command"]


@click.command(
    epilog="Exit codes: 0 the training finished, 1 it failed, timed out, or ran other code than asked for, 2 wrong "
    "usage or a failure of lossbisect itself."
)
@repo_option
@commit_option
@recipe_option
@trainer_option
@lane_option
@python_option
@timeout_option
@out_option
@json_option
@place_options
@store_options
def command(
    repo: Path | None,
    commit: str | None,
    recipe: str | None,
    trainer: str | None,
    lane: str,
    python: Path | None,
    timeout: float | None,
    out: Path | None,
    place: Place,
    store: "StoreUse",
    *,
    is_json: bool,
) -> int:
    """Train a correlation recipe once, and keep its curves at full precision.

    Example: lossbisect run --repo ~/Megatron-Bridge --trainer mlm --out mlm-run
    """
    from lossbisect.bisect.planning import RunsPlan, command_text, cost_of, plan_text
    from lossbisect.bisect.sources import sources_of
    from lossbisect.cli.console import interruptible, iteration_lines
    from lossbisect.report.run import run_json, run_text
    from lossbisect.store.runner import StoredExecutor, StoredRuns
    from lossbisect.train.defaults import run_spec
    from lossbisect.train.executors import open_executor
    from lossbisect.train.run import cache_directory, new_run_directory
    from lossbisect.train.types import Lane, Outcome, TrainerName

    out = out or new_run_directory()
    with (
        interruptible(),
        closing(open_executor(place.executor)) as executor,
        sources_of(repo, commit, out.with_name(f"{out.name}-trees")) as sources,
    ):
        spec = run_spec(
            sources,
            recipe=recipe,
            trainer=TrainerName(trainer) if trainer else None,
            lane=Lane(lane),
            python=python,
            timeout_s=timeout,
            executor=place.executor,
        )
        cost = cost_of(spec, 1, place.executor, cache_directory())
        if place.is_plan:
            click.echo(plan_text(RunsPlan(cost=cost, commands=(command_text(spec, place.executor),))))
            return 0
        place.agree(cost)
        through_store = StoredExecutor(executor, StoredRuns(cache_directory(), store))
        record = through_store.run(spec, out, on_line=iteration_lines())
    click.echo(run_json(record) if is_json else run_text(record))
    return 0 if record.outcome is Outcome.FINISHED else 1
