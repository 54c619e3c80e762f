"""What Megatron-Core and Bridge take for granted on a GPU machine, answered when the module in question is imported.

Each fixup says what it is for. None of them changes a number: they supply a name, pick the local layers where
Transformer Engine's would be, or compile the data-set helpers aside from the source tree.
"""

import copy
import inspect
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from lossbisect.train.cpu_lane import adam, dataset_helpers
from lossbisect.train.cpu_lane.errors import UnsupportedOnCpuLaneError
from lossbisect.train.inside.post_import import after_import

__all__ = ["install"]


def _local_layers(specs: ModuleType) -> None:
    """Transformer Engine's layers are asked for by default: give the local ones, which take fewer arguments."""
    if getattr(specs, "TESpecProvider", specs) is None and hasattr(specs, "LocalSpecProvider"):
        specs.TESpecProvider = specs.LocalSpecProvider  # type: ignore[attr-defined]
    local: Callable[..., Any] = specs.get_gpt_layer_local_spec
    with_te: Callable[..., Any] = specs.get_gpt_layer_with_transformer_engine_spec
    known = set(inspect.signature(local).parameters)

    @wraps(with_te)
    def local_instead(*args: Any, **kwargs: Any) -> Any:
        asked = inspect.signature(with_te).bind(*args, **kwargs).arguments
        return local(**{name: value for name, value in asked.items() if name in known})

    specs.get_gpt_layer_with_transformer_engine_spec = local_instead  # type: ignore[attr-defined]


_LAYER_SPECS = ("megatron.core.models.gpt.gpt_layer_specs", "megatron.core.models.gpt.moe_module_specs")

_USED_WITHOUT_IMPORT = {
    # Bound only where Transformer Engine is, and used without it, in a comparison with None: 2025-06 to 2026-03, and
    # 2024-12.
    "te_general_gemm": ("megatron.core.transformer.moe.moe_utils", "megatron.core.transformer.moe.router"),
    "TEColumnParallelGroupedLinear": _LAYER_SPECS,
    "TERowParallelGroupedLinear": _LAYER_SPECS,
    "TEColumnParallelLinear": _LAYER_SPECS,
    "TERowParallelLinear": _LAYER_SPECS,
}
"""Name -> modules of Megatron-Core that take it for granted."""


def _supply(name: str, module: ModuleType) -> None:
    if not hasattr(module, name):
        setattr(module, name, None)


def _inference_layers(module: ModuleType) -> None:
    """Multi-token prediction of 2026-08 asks whether a layer is one of these, which need Transformer Engine."""
    for name in ("InferenceColumnParallelLinear", "InferenceLayerNormColumnParallelLinear"):
        if not isinstance(getattr(module, name, None), type):
            setattr(module, name, type(name, (), {}))


def _sequence_parallel_norm(module: ModuleType) -> None:
    """The local norm refuses sequence parallel; all it needs is the mark that has its gradients summed over ranks."""
    norm = module.WrappedTorchNorm
    make = norm.__new__

    def make_marked(cls: type, config: Any, *args: Any, **kwargs: Any) -> Any:
        if not config.sequence_parallel:
            return make(cls, config, *args, **kwargs)
        plain = copy.copy(config)
        plain.sequence_parallel = False
        built = make(cls, plain, *args, **kwargs)
        for parameter in built.parameters():
            parameter.sequence_parallel = True
        return built

    norm.__new__ = staticmethod(make_marked)


def _head_widths(module: ModuleType) -> None:
    """Multi-latent attention tells its core attention two widths that the local one doesn't know, and doesn't need."""
    attention = module.DotProductAttention
    init = attention.__init__
    if "k_channels" in inspect.signature(init).parameters:
        return

    @wraps(init)
    def init_without_widths(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("k_channels", None)
        if kwargs.pop("v_channels", config.kv_channels) != config.kv_channels:
            raise UnsupportedOnCpuLaneError("multi-latent attention with a v_head_dim that isn't kv_channels")
        init(self, config, *args, **kwargs)

    attention.__init__ = init_without_widths


def _no_fp8_shards(module: ModuleType) -> None:
    """The distributed optimizer of 2025 insists on Transformer Engine for FP8 parameters; there are none here."""
    module.quantize_param_shard = lambda *args, **kwargs: None  # type: ignore[attr-defined]


def _one_step_count(module: ModuleType) -> None:
    """A GPU's Adam counts steps by parameter group, torch's by parameter, which can't be saved and loaded sharded."""
    optimizer = module.DistributedOptimizer
    init = optimizer.__init__

    @wraps(init)
    def init_with_group_steps(self: Any, inner: Any, *args: Any, **kwargs: Any) -> None:
        adam.count_by_group(inner)
        init(self, inner, *args, **kwargs)

    optimizer.__init__ = init_with_group_steps
    # In float32 the optimizer's parameters are views of the model's, which may be written to only without a gradient.
    for name in [name for name in vars(optimizer) if name.startswith("load_parameter_state")]:
        setattr(optimizer, name, torch.no_grad()(getattr(optimizer, name)))
    module.HAVE_APEX_OR_TE = True  # type: ignore[attr-defined]
    module.USING_APEX_OPTIMIZER = True  # type: ignore[attr-defined]


def _compiled_helpers(cache: Path, module: ModuleType) -> None:
    """``make`` in the source tree needs python3-config of the same Python and leaves files there: compile aside."""
    folder = Path(module.__file__ or "").parent
    module.compile_helpers = lambda: dataset_helpers.build(folder, cache)  # type: ignore[attr-defined]


def _overriding() -> None:
    """Megatron-LM of 2026-05 on imports ``typing.override`` (Python 3.12)."""
    import typing

    if not hasattr(typing, "override"):
        typing.override = lambda method: method  # type: ignore[attr-defined,unused-ignore]


def install(cache: Path) -> None:
    """Register the fixups; each runs when its module is imported.

    Args:
        cache: Directory of compiled data-set helpers.
    """
    _overriding()
    sys.meta_path.insert(0, dataset_helpers.Finder(cache))
    after_import("megatron.core.datasets.utils", partial(_compiled_helpers, cache))
    after_import("megatron.core.models.gpt.gpt_layer_specs", _local_layers)
    after_import("megatron.core.fp8_utils", _no_fp8_shards)
    after_import("megatron.core.tensor_parallel.inference_layers", _inference_layers)
    after_import("megatron.core.optimizer.distrib_optimizer", _one_step_count)
    after_import("megatron.core.transformer.dot_product_attention", _head_widths)
    after_import("megatron.core.transformer.torch_norm", _sequence_parallel_norm)
    for name, modules in _USED_WITHOUT_IMPORT.items():
        for module in modules:
            after_import(module, partial(_supply, name))
