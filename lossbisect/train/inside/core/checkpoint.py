"""Save a run and take it up again in a new process, one file a rank."""

from pathlib import Path
from typing import Any

__all__ = ["load", "save"]


def _files(folder: Path) -> tuple[Path, Path]:
    import torch

    rank = torch.distributed.get_rank()
    return folder / f"rank-{rank}.pt", folder / f"optimizer-{rank}.pt"


def _sharded(optimizer: Any) -> bool:
    parts = getattr(optimizer, "chained_optimizers", [optimizer])
    return any(type(part).__name__ == "DistributedOptimizer" for part in parts)


def save(folder: Path, iteration: int, model: Any, optimizer: Any, scheduler: Any) -> None:
    """Write everything that the next iteration depends on."""
    import torch
    from megatron.core import tensor_parallel

    folder.mkdir(parents=True, exist_ok=True)
    main, sharded = _files(folder)
    state = {
        "iteration": iteration,
        "model": model.state_dict_for_save_checkpoint(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "host": torch.get_rng_state(),
        "device": torch.cuda.get_rng_state(),
        "tracker": tensor_parallel.get_cuda_rng_tracker().get_states(),
    }
    torch.save(state, main)
    if _sharded(optimizer):
        optimizer.save_parameter_state(str(sharded))


def load(folder: Path, model: Any, optimizer: Any, scheduler: Any) -> int:
    """Read it back into freshly built parts.

    Returns:
        The last iteration that was trained.
    """
    import torch
    from megatron.core import tensor_parallel

    main, sharded = _files(folder)
    state = torch.load(main, map_location="cpu", weights_only=False)
    model.load_state_dict(state["model"])
    with torch.no_grad():  # parameters are written to in place
        optimizer.load_state_dict(state["optimizer"])
        if _sharded(optimizer):
            optimizer.load_parameter_state(str(sharded))
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["host"])
    torch.cuda.set_rng_state(state["device"])
    tensor_parallel.get_cuda_rng_tracker().set_states(state["tracker"])
    iteration: int = state["iteration"]
    return iteration
