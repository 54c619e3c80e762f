"""What a run is when little was said about it."""

import sys
from pathlib import Path

from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.recipes import load_recipe
from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

__all__ = ["DEFAULT_RECIPES", "DEFAULT_TIMEOUT_S", "run_spec", "trainer_for"]

DEFAULT_RECIPES = {Lane.CPU: "vanilla-cpu", Lane.CUDA: "vanilla-1gpu"}
DEFAULT_TIMEOUT_S = 1800.0


def run_spec(
    sources: Sources,
    *,
    trainer: TrainerName | None = None,
    recipe: str | None = None,
    lane: Lane = Lane.CPU,
    python: Path | None = None,
    timeout_s: float | None = None,
    executor: ExecutorOptions | None = None,
) -> RunSpec:
    """A run's spec, with what wasn't said filled in.

    Args:
        sources: The code to run.
        trainer: None: by `trainer_for`, Megatron-LM's for a Megatron-LM checkout and Bridge's for everything else.
        recipe: None: the lane's built-in one.
        lane: Where.
        python: None: the interpreter that runs lossbisect.
        timeout_s: Wall time after which the run is killed, seconds; None: `DEFAULT_TIMEOUT_S`.
        executor: Where it takes place; None: this machine.

    Raises:
        RecipeError: There is no such recipe.
    """
    recipe = recipe or DEFAULT_RECIPES[lane]
    has_bridge = sources.mcore is None or sources.bridge is not None
    return RunSpec(
        sources=sources,
        recipe=recipe,
        trainer=trainer or trainer_for(recipe, has_bridge=has_bridge),
        lane=lane,
        python=(python or Path(sys.executable)).absolute(),
        timeout_s=timeout_s or DEFAULT_TIMEOUT_S,
        executor=(executor or ExecutorOptions()).identity,
    )


def trainer_for(recipe: str, *, has_bridge: bool) -> TrainerName:
    """The trainer where none was named: Bridge's or Megatron-LM's, or the first that the recipe allows.

    Args:
        recipe: A built-in recipe's name, or a file.
        has_bridge: The code that is run has Bridge.

    Raises:
        RecipeError: There is no such recipe.
    """
    own = TrainerName.BRIDGE if has_bridge else TrainerName.MLM
    allowed = load_recipe(recipe).trainers
    return own if own in allowed else allowed[0]
