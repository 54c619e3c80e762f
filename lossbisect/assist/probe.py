"""Run by the trainer's interpreter, as a script: what it would import and what is installed, as one JSON object.

Standard library only, on any Python from 3.9 on, and nothing is imported: not torch, not even ``megatron``.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import os
import platform
import re
import sys
from typing import Any

NAMES = ("megatron", "megatron.core", "megatron.bridge", "megatron.training", "torch", "transformer_engine", "apex")
PACKAGES = (
    "torch",
    "megatron-core",
    "megatron-bridge",
    "transformer-engine",
    "transformer-engine-torch",
    "triton",
    "numpy",
    "nvidia-modelopt",
    "transformers",
)


def _spec(name: str, path: list[str] | None = None) -> Any:
    """The spec that an import would find, asked of each finder in turn; unlike find_spec, no parent is imported."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            found = find(name, path) if find else None
        except Exception:  # noqa: S112  # a broken finder of an editable install
            continue
        if found is not None:
            return found
    return None


def _found() -> dict[str, str | None]:
    """Origin of each name: its file, the first folder of a namespace, or None."""
    specs: dict[str, Any] = {}
    origins: dict[str, str | None] = {}
    for name in NAMES:
        parent = name.rpartition(".")[0]
        holder = specs.get(parent)
        inside: list[str] | None = getattr(holder, "submodule_search_locations", None)
        if parent and inside is None:
            origins[name] = None
            continue
        spec = _spec(name, list(inside or ()) if parent else None)
        specs[name] = spec
        if spec is None:
            origins[name] = None
        elif spec.origin is None or isinstance(spec.loader, importlib.machinery.BuiltinImporter):
            origins[name] = (list(spec.submodule_search_locations or []) or [None])[0]
        else:
            origins[name] = spec.origin
    return origins


def _versions() -> dict[str, str]:
    from importlib import metadata

    versions: dict[str, str] = {}
    for name in PACKAGES:
        with contextlib.suppress(Exception):  # not installed, or half of it
            versions[name] = metadata.version(name)
    return versions


def _cuda(torch_file: str | None) -> str | None:
    """CUDA version that torch was built for, read from its version.py."""
    if not torch_file:
        return None
    try:
        with open(os.path.join(os.path.dirname(torch_file), "version.py"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123
            found = re.search(r"^cuda[^=]*=\s*['\"]([\d.]+)['\"]", file.read(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1) if found else None


if __name__ == "__main__":
    here = os.path.realpath(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    # Python put this script's folder first; a training has its own there.
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != here]
    origins = _found()
    print(  # noqa: T201
        json.dumps(
            {
                "python": platform.python_version(),
                "executable": sys.executable,
                "prefix": sys.prefix,
                "path": sys.path,
                "origins": origins,
                "versions": _versions(),
                "torch_cuda": _cuda(origins.get("torch")),
            }
        )
    )
