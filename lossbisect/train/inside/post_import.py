"""Run a function on a module right after it has been imported."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["after_import"]

_Act = Callable[[ModuleType], None]

_acts: dict[str, list[_Act]] = {}
_last_words: dict[str, list[_Act]] = {}
"""Acts for a module whose import fails."""


class _Loader(importlib.abc.Loader):
    """The module's own loader, and then the registered acts."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader  # importlib.resources and inspect ask the real loader
        module.__loader__ = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            for act in _last_words.get(module.__name__, ()):
                act(module)
            raise
        for act in _acts.get(module.__name__, ()):
            act(module)


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _acts:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader)
            if spec is not None:
                return spec
        return None


_finder = _Finder()


def after_import(name: str, act: Callable[[ModuleType], None], *, even_if_it_fails: bool = False) -> None:
    """Call ``act(module)`` once the module ``name`` has been imported; at once if it already is.

    Args:
        name: Full name of the module.
        act: Called with it.
        even_if_it_fails: Call it with the unfinished module too where the import fails, before the error goes on.
    """
    if name in sys.modules:
        act(sys.modules[name])
        return
    _acts.setdefault(name, []).append(act)
    if even_if_it_fails:
        _last_words.setdefault(name, []).append(act)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
