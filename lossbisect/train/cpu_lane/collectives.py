"""NCCL asked for, gloo given."""

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["install"]

_NCCL_ONLY_OPTIONS = ("device_id", "pg_options")


def _over_gloo(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same maker of process groups, but its groups always speak gloo."""

    @wraps(make)
    def make_over_gloo(*args: Any, **kwargs: Any) -> Any:
        for option in _NCCL_ONLY_OPTIONS:
            kwargs.pop(option, None)
        kwargs["backend"] = "gloo"
        if make.__name__ == "init_process_group":
            args = args[1:]  # the first one is the backend
            if os.environ["WORLD_SIZE"] == "1":  # no port needed: any number of runs fit on one machine
                kwargs = {"backend": "gloo", "store": dist.HashStore(), "rank": 0, "world_size": 1}
        return make(*args, **kwargs)

    return make_over_gloo


def _averaging(all_reduce: Callable[..., Any]) -> Callable[..., Any]:
    """``all_reduce`` that knows the average, which gloo doesn't."""

    @wraps(all_reduce)
    def all_reduce_with_average(
        tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        if op != dist.ReduceOp.AVG:
            return all_reduce(tensor, op, group, async_op)
        tensor.div_(dist.get_world_size(group))
        return all_reduce(tensor, dist.ReduceOp.SUM, group, async_op)

    return all_reduce_with_average


def _on_cpu(init_device_mesh: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(init_device_mesh)
    def init_cpu_mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return init_device_mesh("cpu", *args, **kwargs)

    return init_cpu_mesh


def install() -> None:
    """Let every process group speak gloo."""
    originals = {
        "init_process_group": _over_gloo(dist.init_process_group),
        "new_group": _over_gloo(dist.new_group),
        "all_reduce": _averaging(dist.all_reduce),
    }
    for module in (dist, dist.distributed_c10d):
        for name, replacement in originals.items():
            setattr(module, name, replacement)
    mesh = torch.distributed.device_mesh
    dist.init_device_mesh = mesh.init_device_mesh = _on_cpu(mesh.init_device_mesh)
