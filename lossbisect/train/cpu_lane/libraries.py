"""Libraries as a CPU-only machine has them, and no more than a correlation recipe needs.

Which library a module may see depends on who asks: Megatron-Core takes its own paths when Transformer Engine is
missing, while Bridge imports it unasked and then doesn't use it for the local layers. So an import is answered
by its importer.
"""

import builtins
import importlib
import importlib.machinery
import sys
import types
from typing import Any

from lossbisect.train.cpu_lane.errors import UnsupportedOnCpuLaneError

__all__ = ["install"]

_STUBBED_FOR_BRIDGE = ("transformer_engine",)
"""Libraries that Bridge imports unasked and doesn't use with the local layers."""

_VISIBLE_ONLY_TO = {
    "transformer_engine": (),
    "apex": (),
    # Megatron-Core asks for this library's version, which its CPU-installable releases don't tell. Bridge needs it.
    "nvidia_resiliency_ext": ("megatron.bridge", "nvidia_resiliency_ext"),
    # Optional in Megatron-LM, 28 s of imports, and without part in a correlation recipe. Bridge calls it.
    "modelopt": ("megatron.bridge", "modelopt"),
}
"""Library -> prefixes of the only importers that may see it."""

_HIDDEN_FROM = {
    # Optional there, and seconds of imports: for tokenizers that no recipe has, reinforcement learning, object stores.
    "transformers": ("megatron.core.tokenizers", "megatron.rl"),
    "openai": ("megatron.rl",),
    "fastapi": ("megatron.rl",),
    "multistorageclient": ("megatron.core.msc_utils",),
}
"""Library -> prefixes of importers that may not see it."""

_NEVER_NEEDED = ("sklearn", "wandb", "mlflow", "comet_ml", "onnx", "onnxscript", "tensorflow")
"""Optional imports of the trainers that cost seconds at each start and do nothing for a correlation recipe."""

_SETUPTOOLS = "pkg_resources"
"""Gone from setuptools since; Megatron-Core of 2024 takes ``packaging`` from it."""


class _Stub(types.ModuleType):
    """A module that has every name: lower-case ones are modules, the others classes that do nothing."""

    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _stub(f"{self.__name__}.{name}") if name[0].islower() else _stub_class(name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedOnCpuLaneError(self.__name__)


def _stub(name: str) -> _Stub:
    module = _Stub(name)
    module.__path__ = []
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    return module


def _stub_class(name: str) -> type:
    import torch

    return type(name, (torch.nn.Module,), {})


_stubs = {name: _stub(name) for name in _STUBBED_FOR_BRIDGE}


def _is_hidden(library: str, importer: str) -> bool:
    if importer.startswith(_HIDDEN_FROM.get(library, ())):
        return True
    return library in _VISIBLE_ONLY_TO and not importer.startswith(_VISIBLE_ONLY_TO[library])


def _stub_for(name: str, *, is_from: bool) -> types.ModuleType:
    """What ``import name`` binds: the innermost module for ``from name import …``, else the outermost."""
    library, *parts = name.split(".")
    module: types.ModuleType = _stubs[library]
    if is_from:
        for part in parts:
            module = getattr(module, part)
    return module


def _pkg_resources(*args: Any) -> types.ModuleType:
    try:
        return importlib.__import__(_SETUPTOOLS, *args)
    except ModuleNotFoundError:
        import packaging.version

        module = types.ModuleType(_SETUPTOOLS)
        module.packaging = packaging  # type: ignore[attr-defined]
        return module


def install() -> None:
    """Answer the imports of GPU-only and never needed libraries from here on."""
    for name in _NEVER_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # documented: makes the import fail
    real_import = builtins.__import__
    real_import_module = importlib.import_module

    def import_by_importer(
        name: str,
        globals: Any = None,  # noqa: A002  # the import statement passes them by these names
        locals: Any = None,  # noqa: A002
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        library = name.partition(".")[0]
        importer = (globals or {}).get("__name__", "")
        if level == 0 and name == _SETUPTOOLS and importer.startswith("megatron."):
            return _pkg_resources(globals, locals, fromlist, level)
        if level == 0 and library in _stubs and importer.startswith("megatron.bridge"):
            return _stub_for(name, is_from=bool(fromlist))
        if level == 0 and _is_hidden(library, importer):
            raise ModuleNotFoundError(f"No module named {name!r} (hidden on the CPU lane)", name=name)
        return real_import(name, globals, locals, fromlist, level)

    def import_module_by_importer(name: str, package: str | None = None) -> types.ModuleType:
        importer = sys._getframe(1).f_globals.get("__name__", "")
        if _is_hidden(name.partition(".")[0], importer):
            raise ModuleNotFoundError(f"No module named {name!r} (hidden on the CPU lane)", name=name)
        return real_import_module(name, package)

    builtins.__import__ = import_by_importer
    importlib.import_module = import_module_by_importer
