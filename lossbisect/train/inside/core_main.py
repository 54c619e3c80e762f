"""Train over ``megatron.core`` alone.

    python -m lossbisect.train.inside.core_main GROUP.KEY=VALUE...

The settings are those that `lossbisect recipe render NAME --trainer core` prints.
"""

import os
import sys

from lossbisect.train.inside.core.loop import train
from lossbisect.train.inside.core.rows import print_settings
from lossbisect.train.inside.core.settings import Settings, fitted, parse

__all__: list[str] = []


def _set_up(settings: Settings) -> None:
    """Meet the other ranks, divide the work among them, and seed the generators."""
    import torch
    from megatron.core import parallel_state, tensor_parallel

    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group(backend="nccl")
    make = parallel_state.initialize_model_parallel
    make(**fitted(make, settings["parallel"]))
    seed = settings["train"]["seed"]
    torch.manual_seed(seed)
    tensor_parallel.model_parallel_cuda_manual_seed(seed)


def main(words: list[str]) -> None:
    """Read the settings and train."""
    import megatron.core  # noqa: F401  # says first which code it is

    settings = parse(words)
    if os.environ.get("RANK", "0") == "0":
        print_settings(settings)
    _set_up(settings)
    train(settings)

    import torch

    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
