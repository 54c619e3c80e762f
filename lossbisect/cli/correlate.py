"""``lossbisect correlate``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from lossbisect.cli.options import (
    commit_option,
    json_option,
    lane_option,
    out_option,
    plot_option,
    python_option,
    recipe_option,
    repo_option,
    timeout_option,
)

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
@json_option
def command(
    repo: Path | None,
    commit: str | None,
    recipe: str | None,
    lane: str,
    python: Path | None,
    timeout: float | None,
    out: Path | None,
    plot: Path | None,
    *,
    is_json: bool,
) -> int:
    """Train the same recipe with Megatron-LM and with Bridge, and compare the two.

    Example: lossbisect correlate --repo ~/Megatron-Bridge --plot correlation.png
    """
    from lossbisect.bisect.sources import sources_of
    from lossbisect.cli.compare import show
    from lossbisect.compare import compare_logs
    from lossbisect.errors import TrainerError
    from lossbisect.train import read_run, run_recipe
    from lossbisect.train.defaults import run_spec
    from lossbisect.train.run import fresh_directory, new_run_directory
    from lossbisect.train.types import Lane, Outcome, TrainerName

    out = fresh_directory(out or new_run_directory())
    with sources_of(repo, commit, out / "trees") as sources:
        specs = [
            run_spec(sources, recipe=recipe, trainer=trainer, lane=Lane(lane), python=python, timeout_s=timeout)
            for trainer in (TrainerName.MLM, TrainerName.BRIDGE)
        ]
        if repo is not None and sources.bridge is None:
            click.echo("A Megatron-LM checkout has no Bridge in it: the installed megatron.bridge is used.", err=True)
        click.echo(f"Training {specs[0].recipe} with Megatron-LM and with Bridge into {out}", err=True)
        at_once = 2 if Lane(lane) is Lane.CPU else 1  # two trainers on one GPU would share its memory
        with ThreadPoolExecutor(at_once) as pool:
            records = list(pool.map(run_recipe, specs, [out / spec.trainer for spec in specs]))
    for record in records:
        if record.outcome is not Outcome.FINISHED:
            raise TrainerError(
                f"The {record.spec.trainer} run {record.outcome}: {record.reason}. Nothing was compared. "
                f"Its console: {record.console}"
            )
    judgement = compare_logs(read_run(records[0]), read_run(records[1]))
    return show(judgement, plot, is_json=is_json)
