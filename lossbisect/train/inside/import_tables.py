"""transformers' table of what is in which of its modules, worth remembering.

It reads three thousand files for it at its import, and does so twice: an eighth of a warm parent's start, and much more
where the files have to come from a disk.
"""

import marshal
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from lossbisect.train.inside.cached import put, taken
from lossbisect.train.inside.post_import import after_import

__all__ = ["remember_import_tables"]

_READS = "create_import_structure_from_path"
"""The function that reads the files of a folder: from a path to nested dicts of sets."""


def remember_import_tables(cache: Path) -> None:
    """Take the table from the cache, once transformers is imported, as long as none of its folders changes.

    Args:
        cache: Directory of things that can be made again.
    """
    after_import("transformers.utils.import_utils", partial(_remember, cache / "transformers-tables"))


def _remember(file: Path, module: ModuleType) -> None:
    read: Callable[[Any], Any] | None = getattr(module, _READS, None)
    if read is None:  # an older one, or a newer one
        return

    def answer(path: Any) -> Any:
        state = _state(path)
        known = _known(file)
        if known is not None and known[0] == state:
            return known[1]
        setattr(module, _READS, read)  # it asks itself for each folder inside
        try:
            found = read(path)
        finally:
            setattr(module, _READS, answer)
        put(file, marshal.dumps((state, found)))
        return found

    setattr(module, _READS, answer)


def _known(file: Path) -> tuple[Any, Any] | None:
    try:
        state, found = taken(file)
    except (ValueError, TypeError):
        return None
    return state, found


def _state(path: Any) -> list[tuple[str, int]]:
    """Whatever is installed, or a file that comes or goes, changes the folder that it is in."""
    folder = Path(path).parent if Path(path).is_file() else Path(path)
    with os.scandir(folder) as entries:
        inside = sorted((entry.path, entry.stat().st_mtime_ns) for entry in entries if entry.is_dir())
    return [(str(folder), folder.stat().st_mtime_ns), *inside]
