"""``lossbisect axes``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossbisect.cli.keep import store_options
from lossbisect.cli.log_options import checked_tolerance
from lossbisect.cli.options import (
    json_option,
    lane_option,
    out_option,
    python_option,
    recipe_option,
    timeout_option,
    trainer_option,
)
from lossbisect.cli.place import Place, place_options
from lossbisect.train.defaults import DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from lossbisect.store.runner import StoreUse

__all__ = ["command"]

_MOST_RUNS = 11
"""Three of the set-ups, and with four parts four of one part each and four of all but one."""


@click.command(
    epilog="Exit codes: 0 it is known which part makes the difference, 1 the set-ups have the same curve, 3 it can't "
    "be told, 2 wrong usage or a failure of lossbisect itself, 130 interrupted."
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    show_default=True,
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout. Only read, never changed.",
)
@click.option(
    "--good",
    metavar="COMMIT",
    help="Megatron-LM of the good set-up, named as in 'bisect'.  [default: what its Bridge pins, if that is named; "
    "else the commit that is checked out]",
)
@click.option("--bad", metavar="COMMIT", help="Megatron-LM of the bad one.  [default: in the same way]")
@click.option("--good-bridge", metavar="COMMIT", help="Bridge of the good set-up.  [default: the checked-out commit]")
@click.option("--bad-bridge", metavar="COMMIT", help="Bridge of the bad one.  [default: the checked-out commit]")
@recipe_option
@click.option("--bad-recipe", metavar="NAME|FILE", help="Recipe of the bad set-up.  [default: that of the good one]")
@python_option
@click.option(
    "--bad-python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Interpreter of the bad set-up, with its torch and other packages.  [default: that of the good one]",
)
@trainer_option
@lane_option
@timeout_option
@click.option("--metric", default="lm_loss", show_default=True, metavar="COLUMN", help="Column to judge by.")
@click.option(
    "--tolerance",
    default="auto",
    show_default=True,
    callback=checked_tolerance,
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what two runs of the good set-up show (exact if they are equal), 'exact' "
    "every digit, 'rtol=1e-5' a relative difference up to that number.",
)
@out_option
@click.option("--allow-dirty", is_flag=True, help="Go on although tracked files of the checkout are changed.")
@json_option
@place_options
@store_options
def command(
    repo: Path,
    good: str | None,
    bad: str | None,
    good_bridge: str | None,
    bad_bridge: str | None,
    recipe: str | None,
    bad_recipe: str | None,
    python: Path | None,
    bad_python: Path | None,
    trainer: str | None,
    lane: str,
    timeout: float | None,
    metric: str,
    tolerance: float | None,
    out: Path | None,
    place: Place,
    store: "StoreUse",
    *,
    allow_dirty: bool,
    is_json: bool,
) -> int:
    """Say which part of two whole set-ups makes the difference, before a bisect is spent on it.

    A set-up is Megatron-LM, Bridge, the recipe and the interpreter with its packages. Both run, and then mixes of
    them: 4 to 7 short trainings in most cases. The answer ends with the command to run next.

    Example: lossbisect axes --repo ~/Megatron-Bridge --good-bridge v0.5.0 --bad-bridge v0.6.0 --bad-recipe mine.toml
    """
    from lossbisect.bisect.codebase import open_codebase
    from lossbisect.bisect.planning import RunsPlan, command_text, cost_of, plan_text
    from lossbisect.bisect.setups import AxesAnswer, SetupNames, compare_setups
    from lossbisect.bisect.sources import checked_out
    from lossbisect.bisect.training import Training
    from lossbisect.cli.console import interruptible, iteration_lines
    from lossbisect.report.axes import axes_json, axes_text
    from lossbisect.train.run import cache_directory, new_run_directory
    from lossbisect.train.types import Lane, TrainerName

    training = Training(
        recipe=recipe,
        trainer=TrainerName(trainer) if trainer else None,
        lane=Lane(lane),
        python=python,
        timeout_s=timeout or DEFAULT_TIMEOUT_S,
        metric=metric,
        tolerance=tolerance,
    )
    place.check()
    with open_codebase(repo, allow_dirty=allow_dirty) as code:
        spec = training.run_of(checked_out(code), place.executor)
        cost = cost_of(spec, _MOST_RUNS, replace(place.executor, jobs=1), cache_directory())
        if place.is_plan:
            click.echo(plan_text(RunsPlan(cost=cost, commands=(command_text(spec, place.executor),))))
            return 0
    place.agree(cost)
    with interruptible():
        result = compare_setups(
            repo,
            SetupNames(mcore=good, bridge=good_bridge),
            SetupNames(mcore=bad, bridge=bad_bridge, recipe=bad_recipe, python=bad_python),
            training=training,
            executor=place.executor,
            store=store,
            allow_dirty=allow_dirty,
            out=out or new_run_directory(),
            say=lambda text: click.echo(text, err=True),
            on_line=iteration_lines(),
        )
    click.echo(axes_json(result) if is_json else axes_text(result))
    return {AxesAnswer.FOUND: 0, AxesAnswer.SAME: 1, AxesAnswer.UNDECIDED: 3}[result.answer]
