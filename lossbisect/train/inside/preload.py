"""Which modules a warm parent may import before it knows the checkout: those that a run imported from elsewhere.

A cold run remembers them in the order in which they were imported. Left out are packages that look for ``megatron``
themselves: what they do at their import depends on the checkout.
"""

import atexit
import importlib
import json
import os
import sys
import sysconfig
from pathlib import Path

__all__ = ["load", "remember_at_exit"]

_OURS = ("megatron", "lossbisect", "modelopt", "nemo_run", "__main__", "__mp_main__")
"""Top-level packages that come from a checkout, or look for one at their import."""


def _is_elsewhere(name: str, roots: tuple[str, ...]) -> bool:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    spec = getattr(module, "__spec__", None)
    return (
        isinstance(file, str)
        and file.startswith(roots)
        and spec is not None
        and spec.name == name
        and name.partition(".")[0] not in _OURS
    )


def _remember(file: Path) -> None:
    roots = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))
    names = [name for name in list(sys.modules) if _is_elsewhere(name, roots)]
    unfinished = file.with_name(f"{os.getpid()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(names), encoding="utf-8")
        unfinished.replace(file)
    except OSError:  # a cache that can't be written costs time, nothing else
        return


def remember_at_exit(file: Path) -> None:
    """Note in ``file``, at the process's end, which modules it had imported from outside the checkout."""
    atexit.register(_remember, file)


def load(file: Path) -> int:
    """Import the modules that ``file`` names; one that fails is left to the run.

    Returns:
        How many were imported.
    """
    try:
        names: list[str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    sys.modules["megatron"] = None  # type: ignore[assignment]  # whoever looks for it now must not find another one
    loaded = 0
    for name in names:
        try:
            importlib.import_module(name)
            loaded += 1
        except Exception:  # noqa: S112  # whatever a module does at its import, the run will show it
            continue
    del sys.modules["megatron"]
    return loaded
