"""Options that several commands share, spelled once."""

from pathlib import Path

import click

from lossbisect.cli.log_options import (
    LOG_PATH,
    Decorator,
    command_line,
    html_option,
    json_option,
    plot_option,
    read_repeats,
    repeat_candidate_option,
    repeat_option,
    tolerance_option,
)
from lossbisect.cli.number import Number
from lossbisect.train.defaults import DEFAULT_RECIPES, DEFAULT_TIMEOUT_S
from lossbisect.train.types import Lane, TrainerName

__all__ = [
    "LOG_PATH",
    "Decorator",
    "command_line",
    "commit_option",
    "html_option",
    "jobs_option",
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
    type=Number(min=0, min_open=True),
    metavar="SECONDS",
    help=f"Wall time after which a run is killed.  [default: {DEFAULT_TIMEOUT_S:g}]",
)
out_option: Decorator = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The run's own folder, new or empty.  [default: a new one in $LOSSBISECT_CACHE_DIR or the user's cache]",
)

jobs_option: Decorator = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs at once.  [default: 1, on the lane cpu one a core, at most 4]",
)
