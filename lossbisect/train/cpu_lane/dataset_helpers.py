"""Megatron-Core's compiled data-set helper, built once per source and interpreter, outside the source tree.

Megatron-Core compiles ``helpers.cpp`` beside itself with ``make``. That needs ``python3-config`` of the very
interpreter, takes 20 s at every new checkout, and writes into a tree that may not be ours.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

__all__ = ["Finder", "build"]

_MODULE = "megatron.core.datasets.helpers_cpp"


def build(folder: Path, cache: Path) -> Path:
    """Compile ``folder/helpers.cpp`` unless it has been, and return the extension module's file.

    Args:
        folder: ``megatron/core/datasets`` of the tree that is trained.
        cache: Where compiled helpers are kept, by hash of the source and tag of the interpreter.

    Raises:
        ImportError: There is no source, no compiler, no pybind11, or the compiler refuses.
    """
    source = folder / "helpers.cpp"
    if not source.is_file():
        raise ImportError(f"{source}: missing, so the data-set helper can't be compiled", name=_MODULE)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    target = cache / hashlib.sha256(source.read_bytes()).hexdigest()[:16] / f"helpers_cpp{suffix}"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{os.getpid()}-{target.name}")
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{_pybind11_include()}"]
    compiler = os.environ.get("CXX", "c++")
    command = [
        compiler,
        "-O3",
        "-Wall",
        "-shared",
        "-std=c++17",
        "-fPIC",
        *includes,
        str(source),
        "-o",
        str(unfinished),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ImportError(
            f"no C++ compiler {compiler!r} to build {source}; install g++ or set CXX", name=_MODULE
        ) from error
    if done.returncode:
        raise ImportError(f"{source} doesn't compile:\n{done.stderr[-2000:]}", name=_MODULE)
    unfinished.replace(target)  # atomic: runs side by side may build the same helper
    return target


def _pybind11_include() -> str:
    try:
        import pybind11
    except ImportError as error:
        raise ImportError("pybind11 is missing; it's needed to compile the data-set helper", name=_MODULE) from error
    path: str = pybind11.get_include()
    return path


class Finder:
    """Serves the compiled helper, unless the tree brings one that was built for this interpreter."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the helper module; None for every other module."""
        if fullname != _MODULE or not path:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path)
        if found is not None:
            return found
        file = build(Path(next(iter(path))), self._cache)
        return importlib.util.spec_from_file_location(fullname, file)
