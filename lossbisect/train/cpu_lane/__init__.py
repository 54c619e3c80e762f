"""Run a CUDA-only trainer, unmodified, on a CPU.

`activate` makes ``torch.cuda`` answer as one device per rank would, and sends everything placed on it to the CPU. The
trainer's own code isn't changed: what is emulated lives in torch (`devices`, `generators`, `cuda_api`,
`collectives`), and what a CPU-only machine lacks is answered where it is imported (`libraries`, `megatron_fixups`).

The lane's promise is that a run repeats itself bit for bit: one thread, no fused kernels, random numbers of the
emulated device drawn apart from the host's, as on a GPU. What can't be emulated raises `UnsupportedOnCpuLaneError`
naming it.

This package runs in the trainer's process: standard library and torch only, no other part of lossbisect.
"""

from pathlib import Path

from lossbisect.train.cpu_lane.errors import UnsupportedOnCpuLaneError

__all__ = ["UnsupportedOnCpuLaneError", "activate"]


def activate(cache: Path) -> None:
    """Emulate CUDA in this process from here on; call it once, before the trainer is imported.

    Args:
        cache: Directory for the compiled data-set helpers, shared between runs.
    """
    from lossbisect.train.cpu_lane import children, libraries, megatron_fixups

    children.install(cache)
    libraries.install()
    megatron_fixups.install(cache)

    import torch

    from lossbisect.train.cpu_lane import collectives, cuda_api, devices, generators

    torch.set_num_threads(1)  # the order of additions depends on the number of threads
    generators.install()
    cuda_api.install()
    collectives.install()
    devices.install()
