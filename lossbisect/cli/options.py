"""Options that several commands share, spelled once."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossbisect.train.defaults import DEFAULT_RECIPES, DEFAULT_TIMEOUT_S
from lossbisect.train.types import Lane, TrainerName

if TYPE_CHECKING:
    from lossbisect.compare import Repeats

__all__ = [
    "LOG_PATH",
    "Decorator",
    "commit_option",
    "json_option",
    "lane_option",
    "out_option",
    "plot_option",
    "python_option",
    "read_repeats",
    "recipe_option",
    "repeat_candidate_option",
    "repeat_option",
    "repo_option",
    "timeout_option",
    "tolerance_option",
    "trainer_option",
]

type Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LOG_PATH = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
"""A log that is there."""


def _tolerance(_context: click.Context, _parameter: click.Parameter, value: str) -> float | None:
    from lossbisect.compare import parse_tolerance

    try:
        return parse_tolerance(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _plot_path(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a plot that couldn't be written before any work is done."""
    from lossbisect.report.plot import check_plot_path

    if value is not None:
        try:
            check_plot_path(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value


def read_repeats(baseline: tuple[Path, ...], candidate: tuple[Path, ...] = ()) -> "Repeats":
    """The logs of further runs of either side."""
    from lossbisect.compare import Repeats
    from lossbisect.parsers import read_log

    return Repeats(
        baseline=tuple(read_log(path) for path in baseline), candidate=tuple(read_log(path) for path in candidate)
    )


repo_option: Decorator = click.option(
    "--repo",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Megatron Bridge or Megatron-LM checkout to run. Only read.  [default: the installed packages]",
)
commit_option: Decorator = click.option(
    "--commit",
    metavar="COMMIT",
    help="Commit of Megatron-LM, run from a tree of its own: SHA, tag, branch, or bridge:REV.  [default: the checkout "
    "as it is]",
)
recipe_option: Decorator = click.option(
    "--recipe",
    metavar="NAME|FILE",
    help=f"What to train.  [default: {DEFAULT_RECIPES[Lane.CPU]}, on the lane cuda {DEFAULT_RECIPES[Lane.CUDA]}]",
)
trainer_option: Decorator = click.option(
    "--trainer",
    type=click.Choice([name.value for name in TrainerName]),
    help="What trains it.  [default: that of the checkout]",
)
lane_option: Decorator = click.option(
    "--lane",
    type=click.Choice([lane.value for lane in Lane]),
    default=Lane.CPU.value,
    show_default=True,
    help="Where it trains: cpu emulates CUDA and repeats bit for bit.",
)
python_option: Decorator = click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Interpreter that has torch and the trainer's requirements.  [default: the one that runs lossbisect]",
)
timeout_option: Decorator = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help=f"Wall time after which a run is killed.  [default: {DEFAULT_TIMEOUT_S:g}]",
)
out_option: Decorator = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The run's own folder, new or empty.  [default: a new one in $LOSSBISECT_CACHE_DIR or the user's cache]",
)
repeat_option: Decorator = click.option(
    "--repeat",
    "repeats",
    type=LOG_PATH,
    multiple=True,
    metavar="LOG",
    help="Log of another run of the baseline's set-up, as often as there are any: they measure its noise.",
)
repeat_candidate_option: Decorator = click.option(
    "--repeat-candidate",
    "candidate_repeats",
    type=LOG_PATH,
    multiple=True,
    metavar="LOG",
    help="Log of another run of the candidate's set-up, as often as there are any.",
)
tolerance_option: Decorator = click.option(
    "--tolerance",
    default="auto",
    show_default=True,
    callback=_tolerance,
    metavar="auto|exact|rtol=NUMBER",
    help="What counts as the same: 'auto' what the repeats show, or without any what the runs' number format explains; "
    "'exact' every digit; 'rtol=1e-5' a relative difference up to that number.",
)
plot_option: Decorator = click.option(
    "--plot",
    type=click.Path(path_type=Path),
    callback=_plot_path,
    metavar="FILE.png|svg|pdf",
    help="Draw both curves and their difference into this file.  [default: no plot]",
)
json_option: Decorator = click.option(
    "--json", "is_json", is_flag=True, help="Print one JSON object instead of text.  [default: text]"
)
