"""Which GPUs there are, and which of them a slot gets."""

import os
import subprocess
from collections.abc import Sequence

__all__ = ["gpu_variables", "visible_gpus"]


def visible_gpus() -> tuple[str, ...]:
    """Names of the GPUs that a run of ours would see, as CUDA_VISIBLE_DEVICES spells them; none without a driver."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(name.strip() for name in chosen.split(",") if name.strip())
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    return tuple(str(number) for number in range(len(lines)))


def gpu_variables(gpus: Sequence[str], *, slot: int, slots: int) -> dict[str, str]:
    """The variable that shows a slot its share of the GPUs; nothing where there are none to split."""
    share = len(gpus) // slots
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus[slot * share : (slot + 1) * share])} if share else {}
