"""``torch.cuda`` and ``torch.accelerator`` as one idle device answers them; what has no answer raises.

Streams and events do nothing (everything is in order on a CPU), memory figures are zero, and every other public
function of ``torch.cuda`` raises `UnsupportedOnCpuLaneError` with its name rather than fail deep inside the CUDA
driver.
"""

import contextlib
import inspect
import os
import time
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import torch

from lossbisect.train.cpu_lane.errors import UnsupportedOnCpuLaneError

__all__ = ["install"]

_MEMORY_BYTES = 64 << 30
_CAPABILITY = (9, 0)
_NAME = "lossbisect CPU lane"


class _Stream:
    """A stream on which everything has already happened."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def record_event(self, event: Any = None) -> Any:
        event = event or _Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass


class _Event:
    """An event that has already happened; it knows when it was recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._recorded_s = 0.0

    def record(self, stream: Any = None) -> None:
        self._recorded_s = time.perf_counter()

    def elapsed_time(self, end: "_Event") -> float:
        return (end._recorded_s - self._recorded_s) * 1e3

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass


_STREAM = _Stream()


# Each name gets a function of its own: torch._dynamo refuses one object under two names.
def _nothing() -> Callable[..., Any]:
    """A new context manager that does nothing."""
    return lambda *args, **kwargs: contextlib.nullcontext()


def _always(value: Any) -> Callable[..., Any]:
    """A new function that always gives ``value``."""
    return lambda *args, **kwargs: value


def _do_nothing() -> Callable[..., Any]:
    """A new function that does nothing."""
    return _always(None)


def _properties(*args: Any, **kwargs: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=_NAME, major=_CAPABILITY[0], minor=_CAPABILITY[1], total_memory=_MEMORY_BYTES, multi_processor_count=1,
        gcnArchName="", warp_size=32, max_threads_per_multi_processor=2048, L2_cache_size=1 << 20,
    )  # fmt: skip


def _answers() -> dict[str, Any]:
    """What the emulated device says, by name in ``torch.cuda``."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    zeros = ("memory_allocated", "memory_cached", "memory_reserved", "max_memory_allocated", "max_memory_cached",
             "max_memory_reserved", "device_memory_used", "utilization", "memory_usage", "temperature", "power_draw",
             "clock_rate")  # fmt: skip
    acts = ("init", "_lazy_init", "set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
            "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_stream",
            "set_per_process_memory_fraction", "set_sync_debug_mode")  # fmt: skip
    return {
        **{name: _always(0) for name in zeros},
        **{name: _do_nothing() for name in acts},
        "is_available": _always(True),
        "is_initialized": _always(True),
        "_is_in_bad_fork": _always(False),
        "device_count": _always(ranks_here),
        "current_device": _always(0),
        "get_device_properties": _properties,
        "get_device_capability": _always(_CAPABILITY),
        "get_device_name": _always(_NAME),
        "get_arch_list": _always(["sm_90"]),
        "get_sync_debug_mode": _always(0),
        "memory_stats": _always({}),
        "memory_summary": _always(_NAME),
        "mem_get_info": _always((_MEMORY_BYTES, _MEMORY_BYTES)),
        "is_bf16_supported": _always(True),
        "is_tf32_supported": _always(False),
        "can_device_access_peer": _always(True),
        "is_current_stream_capturing": _always(False),
        "current_stream": _always(_STREAM),
        "default_stream": _always(_STREAM),
        "Stream": _Stream,
        "Event": _Event,
        "stream": _nothing(),
        "device": _nothing(),
        "device_of": _nothing(),
        "_lazy_call": lambda call, **kwargs: call(),
        "_initialized": True,
    }


def _is_public_api(module: Any, name: str) -> bool:
    """Whether a name is a function or class of ``torch.cuda`` itself that would reach the CUDA runtime when used."""
    value = getattr(module, name)
    return (
        not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and getattr(value, "__module__", "").startswith("torch.cuda")
        and not (inspect.isclass(value) and issubclass(value, BaseException))
        and not name.endswith(("Storage", "Tensor"))
    )


def _unsupported(module: Any, name: str) -> Any:
    full_name = f"{module.__name__}.{name}"
    original = getattr(module, name)

    @wraps(original, updated=())  # torch's own modules look at __wrapped__
    def raise_unsupported(*args: Any, **kwargs: Any) -> None:
        raise UnsupportedOnCpuLaneError(full_name)

    if inspect.isclass(original):
        return type(name, (), {"__init__": raise_unsupported, "__module__": module.__name__})
    return raise_unsupported


def _install_accelerator() -> None:
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:  # torch before 2.6
        return
    answers = {
        "device_count": torch.cuda.device_count,
        "is_available": _always(True),
        "current_accelerator": _always(torch.device("cuda")),
        "current_device_index": _always(0),
        "current_device_idx": _always(0),
        "set_device_index": _do_nothing(),
        "set_device_idx": _do_nothing(),
        "current_stream": _always(_STREAM),
        "set_stream": _do_nothing(),
        "synchronize": _do_nothing(),
        "empty_cache": _do_nothing(),
        "device_index": _nothing(),
        "memory_stats": _always({}),
        "memory_allocated": _always(0),
        "memory_reserved": _always(0),
        "max_memory_allocated": _always(0),
        "max_memory_reserved": _always(0),
        "reset_peak_memory_stats": _do_nothing(),
        "get_memory_info": _always((_MEMORY_BYTES, _MEMORY_BYTES)),
    }
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            setattr(accelerator, name, answer)


def install() -> None:
    """Put the emulated answers into ``torch.cuda``; the random generators' are installed apart, before."""
    answers = _answers()
    answered_elsewhere = {
        "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed", "get_rng_state", "set_rng_state",
        "get_rng_state_all", "set_rng_state_all",
    }  # fmt: skip
    for name in dir(torch.cuda):
        if name not in answers and name not in answered_elsewhere and _is_public_api(torch.cuda, name):
            setattr(torch.cuda, name, _unsupported(torch.cuda, name))
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, _do_nothing())
    torch.cuda.nvtx.range = _nothing()
    torch.cuda.cudart = lambda: SimpleNamespace(cudaProfilerStart=_do_nothing(), cudaProfilerStop=_do_nothing())
    for name in ("Float", "Half", "BFloat16", "Long", "Int", "Double", "Byte", "Bool", "Short", "Char"):
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    torch.compile = lambda model=None, *args, **kwargs: (lambda f: f) if model is None else model
    torch.get_device_module = _always(torch.cuda)
    _install_accelerator()
