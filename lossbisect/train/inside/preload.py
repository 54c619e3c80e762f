"""Which modules a warm parent may import before it knows the checkout: those that runs imported from elsewhere.

Each run adds what it had to import itself to the list, so that no later one has to: commits years apart import
different libraries. Left out are packages that look for ``megatron`` themselves: what they do at their import depends
on the checkout.
"""

import importlib
import json
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from lossbisect.train.inside.cached import put

__all__ = ["Preload", "remembering"]

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


def _read(file: Path) -> list[str]:
    try:
        names: list[str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return names


def remembering(file: Path) -> Callable[[], None]:
    """What notes in ``file`` the modules that this process has imported from outside the checkout.

    Returns:
        Adds those that aren't in the file yet, in the order in which they were imported.
    """
    roots = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))
    looked_at = 0

    def remember() -> None:
        nonlocal looked_at
        if len(sys.modules) == looked_at:
            return
        looked_at = len(sys.modules)
        known = _read(file)
        new = [name for name in list(sys.modules.keys() - set(known)) if _is_elsewhere(name, roots)]
        if not new:
            return
        order = {name: place for place, name in enumerate(sys.modules)}
        put(file, json.dumps([*known, *sorted(new, key=order.__getitem__)]).encode())

    return remember


class Preload:
    """The modules on the list, imported once each."""

    def __init__(self, file: Path) -> None:
        """Read the list from ``file``."""
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._tried: set[str] = set()

    def is_behind(self) -> bool:
        """Whether the list has changed since it was last read."""
        return self._now() != self._stamp

    def load(self) -> int:
        """Import what is new on the list; what fails is left to the run.

        Returns:
            How many were imported.
        """
        self._stamp = self._now()
        names = [name for name in _read(self._file) if name not in self._tried]
        sys.modules["megatron"] = None  # type: ignore[assignment]  # who looks for it now must not find another one
        loaded = 0
        for name in names:
            try:
                importlib.import_module(name)
                loaded += 1
            except Exception:  # noqa: S112  # whatever a module does at its import, the run will show it
                continue
        del sys.modules["megatron"]
        self._tried.update(names)
        return loaded

    def _now(self) -> tuple[int, int] | None:
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino
