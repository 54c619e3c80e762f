"""Looking sources up quickly: the trainers ask for the docstrings of hundreds of fields, and for the callers' modules.

`inspect` goes through all modules each time it meets a new one, and parses a whole file for each class in it. What it
finds out stays true, so a warm parent finds it out once for all of its runs.
"""

import ast
import inspect
import sys
from functools import lru_cache
from types import ModuleType

__all__ = ["look_up_quickly"]

_FILES = 4
"""Trees that are remembered: classes are asked about file by file."""


class _Ast(ModuleType):
    """The module `ast`, whose parser remembers."""

    parse = staticmethod(lru_cache(_FILES)(ast.parse))

    def __getattr__(self, name: str) -> object:
        return getattr(ast, name)


def look_up_quickly() -> None:
    """Let `inspect` know the modules that are there, and remember the files that it parses; it never changes a tree."""
    inspect.getmodule(sys._getframe())  # noqa: SLF001  # a frame: whose module isn't known, so that all are looked at
    inspect.ast = _Ast("ast")  # type: ignore[attr-defined]
