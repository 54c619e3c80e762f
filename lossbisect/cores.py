"""How much of this machine is ours."""

import os

__all__ = ["usable_cores"]


def usable_cores() -> int:
    """Cores that this process may run on, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
