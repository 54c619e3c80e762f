"""Byte code of the checkout's modules, kept by what their source says and not by where it lies.

Two commits share most of their files, and each run has a tree of its own: a file that was compiled once, at any commit
and in any tree, isn't compiled again. No byte code is written into a tree.
"""

import hashlib
import marshal
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # as importlib does with code from another place
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from lossbisect.train.inside.cached import put, taken

__all__ = ["keep", "make_room"]

_MOST_BYTES = 512 << 20


def _folder(cache: Path) -> Path:
    return cache / f"code-{sys.implementation.cache_tag}-{sys.flags.optimize}"


def keep(cache: Path, roots: Sequence[str]) -> None:
    """Take byte code of modules under ``roots`` from the cache from here on, and put it there.

    Args:
        cache: Directory of things that can be made again.
        roots: Folders that a trainer's code is imported from.
    """
    folder = _folder(cache)
    inside = tuple(os.path.join(root, "") for root in roots)  # noqa: PTH118  # compared with strings
    get_code = SourceFileLoader.get_code

    def get_kept_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        if not path.startswith(inside):
            return get_code(self, fullname)
        source = self.get_data(path)
        file = folder / hashlib.blake2b(source, digest_size=16).hexdigest()
        code = taken(file)
        if not isinstance(code, CodeType):
            code = self.source_to_code(source, path)
            put(file, marshal.dumps(code))
        _fix_co_filename(code, path)
        return code

    SourceFileLoader.get_code = get_kept_code  # type: ignore[assignment,method-assign]


def make_room(cache: Path) -> None:
    """Delete the oldest half of what is kept if it is more than 512 MB."""
    with suppress(OSError):
        entries = sorted(
            (entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(_folder(cache))
        )
        if sum(size for _, size, _ in entries) > _MOST_BYTES:
            for _, _, path in entries[: len(entries) // 2]:
                Path(path).unlink(missing_ok=True)
