"""``lossbisect correlate``."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.keep import store_options
from lossbisect.cli.options import (
    command_line,
    commit_option,
    html_option,
    json_option,
    lane_option,
    out_option,
    plot_option,
    python_option,
    recipe_option,
    repo_option,
    timeout_option,
)
from lossbisect.cli.place import Place, place_options

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse

__all__ = ["command"]


@click.command(epilog="Exit codes: 0 same, 1 diverged, 3 undecided, 2 wrong usage or a failed run.")
@repo_option
@commit_option
@recipe_option
@lane_option
@python_option
@timeout_option
@out_option
@plot_option
@html_option
@json_option
@place_options
@store_options
def command(
    repo: Path | None,
    commit: str | None,
    recipe: str | None,
    lane: str,
    python: Path | None,
    timeout: float | None,
    out: Path | None,
    plot: Path | None,
    html: Path | None,
    place: Place,
    store: "StoreUse",
    *,
    is_json: bool,
) -> int:
    """Train the same recipe with Megatron-LM and with Bridge, and compare the two.

    Example: lossbisect correlate --repo ~/Megatron-Bridge --plot correlation.png
    """
    from lossbisect.bisect.planning import RunsPlan, command_text, cost_of, plan_text
    from lossbisect.bisect.sources import sources_of
    from lossbisect.cli.compare import show
    from lossbisect.cli.console import interruptible, iteration_lines
    from lossbisect.compare import compare_logs
    from lossbisect.errors import TrainerError
    from lossbisect.store.runner import StoredExecutor, StoredRuns
    from lossbisect.train import read_run
    from lossbisect.train.defaults import run_spec
    from lossbisect.train.executors import ExecutorName, open_executor
    from lossbisect.train.run import cache_directory, fresh_directory, new_run_directory
    from lossbisect.train.types import Lane, Outcome, TrainerName

    if place.executor.name is ExecutorName.COMMAND:
        raise click.UsageError("correlate runs two trainers, and --command names one program. Use 'lossbisect run'.")
    # Two trainers on one GPU would share its memory.
    where = place.executor if Lane(lane) is not Lane.CPU else replace(place.executor, jobs=place.executor.jobs or 2)
    out = out or new_run_directory()
    with (
        interruptible(),
        closing(open_executor(where)) as executor,
        sources_of(repo, commit, out.with_name(f"{out.name}-trees")) as sources,
    ):
        specs = [
            run_spec(
                sources, recipe=recipe, trainer=trainer, lane=Lane(lane), python=python, timeout_s=timeout,
                executor=where,
            )
            for trainer in (TrainerName.MLM, TrainerName.BRIDGE)
        ]  # fmt: skip
        cost = cost_of(specs[0], len(specs), where, cache_directory())
        if place.is_plan:
            click.echo(plan_text(RunsPlan(cost=cost, commands=tuple(command_text(spec, where) for spec in specs))))
            return 0
        place.agree(cost)
        out = fresh_directory(out)
        if repo is not None and sources.bridge is None:
            click.echo("A Megatron-LM checkout has no Bridge in it: the installed megatron.bridge is used.", err=True)
        click.echo(f"Training {specs[0].recipe} with Megatron-LM and with Bridge into {out}", err=True)
        through_store = StoredExecutor(executor, StoredRuns(cache_directory(), store))
        with ThreadPoolExecutor(len(specs)) as pool:
            runs = [
                pool.submit(through_store.run, spec, out / spec.trainer, on_line=iteration_lines(spec.trainer))
                for spec in specs
            ]
            try:
                records = [run.result() for run in runs]
            except BaseException:
                executor.cancel()
                raise
    for record in records:
        if record.outcome is not Outcome.FINISHED:
            raise TrainerError(
                f"The {record.spec.trainer} run {record.outcome}: {record.reason}. Nothing was compared. "
                f"Its console: {record.console}"
            )
    judgement = compare_logs(read_run(records[0]), read_run(records[1]))
    if plot is not None:
        from lossbisect.report.plot import draw

        draw(judgement, plot)
    if html is not None:
        from lossbisect.report.html.correlate import correlate_page
        from lossbisect.report.html.origin import origin_of, write_page

        origin = origin_of(command_line(), [path for record in records for path in (record.scalars, record.console)])
        write_page(correlate_page(judgement, records, origin), html)
    return show(judgement, is_json=is_json)
