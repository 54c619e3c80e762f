"""What a run is when little was said about it."""

import sys
from pathlib import Path

from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

__all__ = ["DEFAULT_RECIPES", "DEFAULT_TIMEOUT_S", "run_spec"]

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
        trainer: None: Megatron-LM's for a Megatron-LM checkout, Bridge's for everything else.
        recipe: None: the lane's built-in one.
        lane: Where.
        python: None: the interpreter that runs lossbisect.
        timeout_s: Wall time after which the run is killed, seconds; None: `DEFAULT_TIMEOUT_S`.
        executor: Where it takes place; None: this machine.
    """
    is_mlm_alone = sources.mcore is not None and sources.bridge is None
    return RunSpec(
        sources=sources,
        recipe=recipe or DEFAULT_RECIPES[lane],
        trainer=trainer or (TrainerName.MLM if is_mlm_alone else TrainerName.BRIDGE),
        lane=lane,
        python=(python or Path(sys.executable)).absolute(),
        timeout_s=timeout_s or DEFAULT_TIMEOUT_S,
        executor=(executor or ExecutorOptions()).identity,
    )
