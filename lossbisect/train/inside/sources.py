"""Looking sources up quickly: the trainers ask for the docstrings of hundreds of fields, and for the callers' modules.

`inspect` goes through all modules for a frame of a new file, and parses a whole file for each class in it; Megatron-LM
reads the same classes each time that it makes its argument parser, three times a run. What they find out stays true for
as long as the process lives, and what is read of a class for as long as its file says the same.
"""

import ast
import hashlib
import inspect
import marshal
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from lossbisect.train.inside.cached import put, taken
from lossbisect.train.inside.post_import import after_import

__all__ = ["look_up_quickly", "read_classes_once"]

_FILES = 4
"""Trees that are remembered: classes are asked about file by file."""

_FACTORY, _READS = "ArgumentGroupFactory", "_get_field_docstrings"
"""What of `megatron.training.argument_utils` reads a class: from the class to a dict of texts by field."""

_getmodule = inspect.getmodule


class _Ast(ModuleType):
    """The module `ast`, whose parser remembers."""

    parse = staticmethod(lru_cache(_FILES)(ast.parse))

    def __getattr__(self, name: str) -> object:
        return getattr(ast, name)


def look_up_quickly() -> None:
    """Let `inspect` remember the files that it parses, whose trees it never changes, and find modules by name."""
    inspect.ast = _Ast("ast")  # type: ignore[attr-defined]
    inspect.getmodule = _module


def _module(object: Any, _filename: str | None = None) -> ModuleType | None:  # noqa: A002  # as `inspect` calls it
    if isinstance(object, FrameType):
        module = sys.modules.get(object.f_globals.get("__name__", ""))
        if module is not None and getattr(module, "__file__", None) == object.f_code.co_filename:
            return module
    return _getmodule(object, _filename)


def read_classes_once(cache: Path) -> None:
    """Let Megatron-LM read each class once, as soon as the module that does it is imported.

    Args:
        cache: Directory of things that can be made again: what was read of a class that is the same at another commit.
    """
    after_import("megatron.training.argument_utils", partial(_remember_texts, cache / "class-texts"))


def _remember_texts(folder: Path, module: ModuleType) -> None:
    factory = getattr(module, _FACTORY, None)
    read = getattr(factory, _READS, None)
    if read is None:  # an older one, or a newer one
        return
    known: dict[type, dict[str, str]] = {}

    def answer(self: Any, of: type) -> dict[str, str]:
        if of not in known:
            known[of] = _kept(folder, [module, *of.__mro__[:-1]], lambda: read(self, of))
        return dict(known[of])

    setattr(factory, _READS, answer)


def _kept(folder: Path, of: Sequence[ModuleType | type], read: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What ``read`` says, kept for as long as the files say the same that it depends on."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        for each in of:
            digest.update(f"{each.__module__}.{each.__qualname__}".encode() if isinstance(each, type) else b"")
            digest.update(Path(inspect.getfile(each)).read_bytes())
    except (OSError, TypeError):
        return read()
    file = folder / digest.hexdigest()
    found: dict[str, str] | None = taken(file)
    if found is None:
        found = read()
        put(file, marshal.dumps(found))
    return found
