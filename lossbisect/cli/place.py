"""Options that say where runs take place, and what must be asked before they do."""

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossbisect.cli.number import Number
from lossbisect.train.executors.options import DEFAULT_QUEUE_TIMEOUT_S, ExecutorName, ExecutorOptions
from lossbisect.train.types import Lane

if TYPE_CHECKING:
    from lossbisect.train.cost import RunsCost

__all__ = ["Place", "place_options"]

DEFAULT_MAX_GPU_HOURS = 1.0
_NAMES = ("executor", "jobs", "retries", "run_command", "sbatch_template", "sbatch_options", "queue_timeout")
_OWNERS = {
    "run_command": ExecutorName.COMMAND,
    "sbatch_template": ExecutorName.SLURM,
    "sbatch_options": ExecutorName.SLURM,
    "queue_timeout": ExecutorName.SLURM,
}
_SPELLED = {
    "run_command": "--command",
    "sbatch_template": "--sbatch-template",
    "sbatch_options": "--sbatch-option",
    "queue_timeout": "--queue-timeout",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where runs take place, as the command line says it.

    Attributes:
        given: The executor's options; None if none was given.
        is_plan: Only say what would be run.
        is_yes: Ask nothing.
        max_gpu_hours: Above this a run on GPUs or on Slurm is asked for first.
    """

    given: ExecutorOptions | None
    is_plan: bool
    is_yes: bool
    max_gpu_hours: float

    @property
    def executor(self) -> ExecutorOptions:
        """The executor's options, by default this machine, one run at a time."""
        return self.given or ExecutorOptions()

    def is_free(self, lane: Lane) -> bool:
        """Whether nothing that runs hold has to be asked for: neither GPUs nor nodes."""
        from lossbisect.train.cost import gpus_of, held_by

        return not held_by(gpus_of(lane, ranks=1), self.executor.name)

    def check(self) -> None:
        """Find out before anything is made that the executor can't be opened.

        Raises:
            TrainerError: It isn't there, or an option of it is wrong.
        """
        from lossbisect.train.executors import open_executor

        open_executor(self.executor).close()

    def agree(self, cost: "RunsCost") -> None:
        """Ask before something expensive is run.

        Raises:
            UsageError: It is too expensive, and there is nobody to ask.
            Abort: The answer was no.
        """
        if self.is_yes or cost.hours <= self.max_gpu_hours:
            return
        about = "about" if cost.each_s is not None else "at most"
        what = f"{cost.runs} runs, {about} {cost.hours:.2g} {cost.unit}"
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"{what}: more than --max-gpu-hours {self.max_gpu_hours:g}, and nobody is there to agree. "
                "Add --yes, or raise the limit. --plan shows more."
            )
        click.confirm(f"This is {what}. Go on?", abort=True, err=True)


def _pairs(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    if not values:
        return None
    pairs = {}
    for value in values:
        name, _, setting = value.removeprefix("--").partition("=")
        if not name:
            raise click.BadParameter(f"'{value}' is no option of sbatch. Example: partition=a100")
        pairs[name] = setting
    return pairs


_OPTIONS = (
    click.option(
        "--executor",
        type=click.Choice([name.value for name in ExecutorName]),
        help="Where it runs: on this machine, as Slurm jobs, or by a command of yours.  [default: local]",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Runs at once; GPUs are split between them.  [default: 1; a bisect on the lane cpu one a core, at most 4]",
    ),
    click.option(
        "--retries",
        type=click.IntRange(min=0),
        metavar="N",
        help="How often a run that failed by its infrastructure (node, network, disk) is tried again.  [default: 2]",
    ),
    click.option(
        "--command",
        "run_command",
        metavar="WORDS",
        help="Run this instead of a trainer and read its output as the log, such as 'bash train.sh {worktree} {out}'. "
        "In braces: worktree, bridge, commit, out, iterations, recipe.",
    ),
    click.option(
        "--sbatch-template",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Batch script of your own with {command} where the trainer runs, see docs/executors.md.  [default: one "
        "that submitit writes]",
    ),
    click.option(
        "--sbatch-option",
        "sbatch_options",
        multiple=True,
        callback=_pairs,
        metavar="NAME=VALUE",
        help="Option of sbatch, such as partition=a100 or account=me; as often as needed.",
    ),
    click.option(
        "--queue-timeout",
        type=Number(min=0, min_open=True),
        metavar="SECONDS",
        help=f"How long a Slurm job may wait for its start.  [default: {DEFAULT_QUEUE_TIMEOUT_S:g}]",
    ),
    click.option(
        "--plan", "is_plan", is_flag=True, help="Say what would be run, how long and at what cost; run nothing."
    ),
    click.option("--yes", "is_yes", is_flag=True, help="Don't ask before an expensive run."),
    click.option(
        "--max-gpu-hours",
        type=Number(min=0),
        default=DEFAULT_MAX_GPU_HOURS,
        show_default=True,
        metavar="HOURS",
        help="Ask before runs on GPUs, or on Slurm's nodes, that may take more than that.",
    ),
)


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all options of this module, as one argument ``place``."""

    @functools.wraps(function)
    def with_place(*arguments: Any, is_plan: bool, is_yes: bool, max_gpu_hours: float, **others: Any) -> Any:
        chosen = {name: others.pop(name) for name in _NAMES}
        place = Place(given=_executor(chosen), is_plan=is_plan, is_yes=is_yes, max_gpu_hours=max_gpu_hours)
        return function(*arguments, place=place, **others)

    decorated: Callable[..., Any] = with_place
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _executor(chosen: Mapping[str, Any]) -> ExecutorOptions | None:
    given = {name: value for name, value in chosen.items() if value is not None}
    if not given:
        return None
    name = ExecutorName(given["executor"]) if "executor" in given else None
    for option, owner in _OWNERS.items():
        if option in given and name not in (None, owner):
            raise click.UsageError(f"{_SPELLED[option]} goes with --executor {owner}.")
        name = owner if option in given else name
    if name is ExecutorName.COMMAND and "run_command" not in given:
        raise click.UsageError("--executor command needs --command 'bash train.sh {worktree} {out}'.")
    template = given.get("sbatch_template")
    values: dict[str, Any] = {
        "name": name or ExecutorName.LOCAL,
        "jobs": given.get("jobs"),
        "retries": given.get("retries"),
        "command": given.get("run_command"),
        "folder": Path.cwd() if name is ExecutorName.COMMAND else None,
        "sbatch_template": template.absolute() if template else None,
        "sbatch_options": given.get("sbatch_options"),
        "queue_timeout_s": given.get("queue_timeout"),
    }
    return ExecutorOptions(**{key: value for key, value in values.items() if value is not None})
