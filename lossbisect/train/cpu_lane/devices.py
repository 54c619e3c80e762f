"""Everything placed on ``cuda`` stays on the CPU.

A function mode rewrites the device of every torch call. Tensors that the trainer makes without a device belong to the
host until they are moved, and are marked so: random numbers drawn into them come from the host's generator.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from lossbisect.train.cpu_lane.errors import UnsupportedOnCpuLaneError
from lossbisect.train.cpu_lane.generators import host

__all__ = ["install"]

_CPU = torch.device("cpu")
_HOST_MARK = "_lossbisect_on_host"

_RANDOM_FACTORIES = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
_FACTORIES = _RANDOM_FACTORIES | {
    torch.arange, torch.as_tensor, torch.empty, torch.from_numpy, torch.full, torch.linspace, torch.ones, torch.tensor,
    torch.zeros,
}  # fmt: skip
_RANDOM_IN_PLACE = {
    torch.Tensor.bernoulli_, torch.Tensor.cauchy_, torch.Tensor.exponential_, torch.Tensor.geometric_,
    torch.Tensor.log_normal_, torch.Tensor.normal_, torch.Tensor.random_, torch.Tensor.uniform_,
}  # fmt: skip
_INTEGER_TYPES = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool}


def _is_emulated(device: object) -> bool:
    """Whether a device argument means the emulated device: a CUDA device, or a bare number."""
    if isinstance(device, torch.device):
        return bool(device.type == "cuda")
    if isinstance(device, str):
        return device.startswith("cuda")
    return isinstance(device, int) and not isinstance(device, bool)


def _is_other_accelerator(device: object) -> bool:
    kind = (
        device.type if isinstance(device, torch.device) else str(device).split(":")[0] if device is not None else "cpu"
    )
    return kind not in ("cpu", "cuda", "meta") and not isinstance(device, int)


def _is_on_host(tensor: object) -> bool:
    return getattr(tensor, _HOST_MARK, False) is True


def _mark_on_host(tensor: Any) -> Any:
    if isinstance(tensor, torch.Tensor):
        setattr(tensor, _HOST_MARK, True)
    return tensor


def _unmark(tensor: Any) -> Any:
    if _is_on_host(tensor):
        delattr(tensor, _HOST_MARK)
    return tensor


def _without_fp8(kwargs: Mapping[str, Any]) -> None:
    dtype = kwargs.get("dtype")
    if dtype is not None and "float8" in str(dtype):
        raise UnsupportedOnCpuLaneError(f"the number format {dtype}")


class _EmulatedDevice(TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here on purpose
    """Rewrites devices, and picks the generator, for every torch function the trainer calls."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _FACTORIES:
            return self._make(func, args, dict(kwargs or {}))
        if func in _RANDOM_IN_PLACE and _is_on_host(args[0]):
            kwargs = dict(kwargs or {})
            kwargs["generator"] = kwargs.get("generator") or host
        elif func is torch.Tensor.to:
            args, kwargs = self._moved(args, dict(kwargs or {}))
        elif func is torch.histc and args[0].dtype in _INTEGER_TYPES:  # CUDA counts integers, the CPU kernel doesn't
            return func(args[0].float(), *args[1:], **(kwargs or {})).to(args[0].dtype)
        elif kwargs and "device" in kwargs:
            kwargs = dict(kwargs)
            if _is_emulated(kwargs["device"]):
                kwargs["device"] = _CPU
        return func(*args, **(kwargs or {}))

    @staticmethod
    def _make(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _without_fp8(kwargs)
        device = kwargs.get("device")
        if _is_emulated(device):
            kwargs["device"] = _CPU
            return func(*args, **kwargs)
        if _is_other_accelerator(device):
            raise UnsupportedOnCpuLaneError(f"the device {device}")
        if func in _RANDOM_FACTORIES and str(device or "cpu") == "cpu":
            kwargs["generator"] = kwargs.get("generator") or host
        return _mark_on_host(func(*args, **kwargs))

    @staticmethod
    def _moved(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        _without_fp8({"dtype": next((arg for arg in args[1:] if isinstance(arg, torch.dtype)), kwargs.get("dtype"))})
        if any(_is_emulated(device) for device in (*args[1:2], kwargs.get("device"))):
            _unmark(args[0])
        mapped = tuple(_CPU if _is_emulated(arg) else arg for arg in args[1:])
        if "device" in kwargs and _is_emulated(kwargs["device"]):
            kwargs["device"] = _CPU
        return (args[0], *mapped), kwargs


def _tensor_cuda(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _unmark(self)


def _module_cuda(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    for tensor in (*self.parameters(), *self.buffers()):
        _unmark(tensor)
    return self


def _install_tensor_methods() -> None:
    tensor_type = torch.Tensor.type

    def type_with_cuda_names(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = tensor_type(self, *args, **kwargs)
        is_name = isinstance(result, str)  # megatron asserts on 'torch.cuda.FloatTensor'
        return result.replace("torch.", "torch.cuda.", 1) if is_name and "cuda" not in result else result

    torch.Tensor.type = type_with_cuda_names
    torch.Tensor.cuda = _tensor_cuda
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self
    torch.Tensor.is_pinned = lambda self, *args, **kwargs: False
    torch.Tensor.is_cuda = property(lambda self: not _is_on_host(self))
    torch.Tensor.record_stream = lambda self, stream: None
    torch.nn.Module.cuda = _module_cuda


def _install_loading() -> None:
    """Checkpoints written by the lane hold CPU tensors; a map to ``cuda`` keeps them there."""
    load = torch.load

    def load_to_cpu(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return load(f, _CPU if map_location is None or _is_emulated(map_location) else map_location, *args, **kwargs)

    torch.load = load_to_cpu

    loader_init = torch.utils.data.DataLoader.__init__

    def init_without_pinning(self: Any, *args: Any, **kwargs: Any) -> None:
        loader_init(self, *args, **{**kwargs, "pin_memory": False})

    torch.utils.data.DataLoader.__init__ = init_without_pinning


def _install_backward(mode: TorchFunctionMode) -> None:
    """A backward pass is itself a torch function, and a mode is off inside its own handler: switch it on again."""
    run_backward = torch.autograd.graph._engine_run_backward

    def run_backward_on_device(*args: Any, **kwargs: Any) -> Any:
        with mode:
            return run_backward(*args, **kwargs)

    torch.autograd._engine_run_backward = run_backward_on_device


def install() -> None:
    """Send everything that is placed on ``cuda`` to the CPU from here on."""
    _install_tensor_methods()
    _install_loading()
    mode = _EmulatedDevice()
    _install_backward(mode)
    mode.__enter__()
