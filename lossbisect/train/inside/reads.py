"""What a run takes from a checkout: every file that it opens, and every name that it looks up there.

A commit that changes none of it gives the same run: that is what lets a bisect leave commits out. So what is looked up
in vain counts too (a file that comes into being there would be found), a folder that is listed counts with the names
in it, and one that is handed on to a subprocess with all that is in it.

Python reports what it opens and lists (`sys.addaudithook`); what it looks up to import, or asks about with ``os.stat``,
is seen by standing in the way.
"""

# Strings, not paths: these functions are called some ten thousand times a run.
# ruff: noqa: PTH109, PTH118, PTH119

import atexit
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import FileFinder, ModuleSpec
from pathlib import Path
from typing import Any

__all__ = ["record"]

_LISTINGS = ("os.listdir", "os.scandir")
_BY_NAME = ("<frozen importlib._bootstrap_external>", importlib.metadata.__file__)
"""Who lists a folder only to find certain names in it: modules, which are seen as they are looked up, and metadata of
packages, of which whoever uses this knows."""


class _Reads:
    """Paths under the checkout's roots, by the way in which they were used."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
        self._bare = frozenset(root[:-1] for root in self._roots)
        self.opened: set[str] = set()
        self.looked_up: set[str] = set()
        self.missed: set[str] = set()
        self.listed: set[str] = set()
        self.handed_on: set[str] = set()

    def note(self, kind: set[str], path: object) -> None:
        """Remember a path if it is inside a root."""
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            if not isinstance(path, os.PathLike):
                return
            path = os.fspath(path)
            if not isinstance(path, str):
                return
        full = path if path.startswith("/") else os.path.join(os.getcwd(), path)
        if full.startswith(self._roots) or full in self._bare:
            kind.add(os.path.normpath(full))

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook."""
        if event == "open":
            path, _, flags = arguments
            if not flags & (os.O_WRONLY | os.O_RDWR):
                self.note(self.opened, path)
        elif event in _LISTINGS:
            if sys._getframe(1).f_code.co_filename not in _BY_NAME:  # noqa: SLF001  # no other way to ask
                self.note(self.listed, arguments[0] or ".")
        elif event == "subprocess.Popen":
            self._popen(*arguments)

    def _popen(self, executable: object, words: Any, folder: object, _environment: object) -> None:
        if os.path.basename(str(executable)) == "git":  # reads the history, which tells every commit from the next
            return
        for word in [folder or ".", *([words] if isinstance(words, str | bytes) else words)]:
            self.note(self.handed_on, word)

    def __len__(self) -> int:
        return sum(map(len, (self.opened, self.looked_up, self.missed, self.listed, self.handed_on)))

    def as_json(self) -> str:
        """Root by root, with paths relative to it."""
        tables = []
        for root in self._roots:
            kinds = {"opened": {_source(path) for path in self.opened}, "looked_up": self.looked_up}
            kinds |= {"missed": self.missed, "listed": self.listed, "handed_on": self.handed_on}
            tables.append(
                {"root": root[:-1]}
                | {
                    kind: sorted({os.path.relpath(path, root) for path in paths if (path + "/").startswith(root)})
                    for kind, paths in sorted(kinds.items())
                }
            )
        return json.dumps(tables)


def _source(path: str) -> str:
    """The source of a file of byte code; another file is itself."""
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path


def record(out: Path, roots: Sequence[str]) -> Callable[[], None]:
    """Watch what is read under ``roots`` from now on, and write it into ``out`` when the process ends.

    Each rank has a file, whose name says of how many. A process that is killed leaves what it wrote before.

    Returns:
        Writes what was read so far, if that is more than was written: to be called before a value is made known, so
        that a run which is stopped for it is known to have read no more for it.
    """
    rank, ranks = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    file = out / f"reads-{rank}-of-{ranks}.json"
    reads = _Reads(roots)
    _watch_imports(reads)
    _watch_stat(reads)
    sys.addaudithook(reads.heard)

    written = -1

    def write() -> None:
        nonlocal written
        if len(reads) == written:
            return
        written = len(reads)
        # What is there already is our own, or that of a part of the run that this process has forked off.
        earlier = file.read_text(encoding="utf-8") if file.is_file() else "[]"
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_text(_merged(earlier, reads.as_json()), encoding="utf-8")
        unfinished.replace(file)

    atexit.register(write)
    return write


def _merged(earlier: str, later: str) -> str:
    """What either of two processes of one run has read."""
    tables = json.loads(later)
    for table, before in zip(tables, json.loads(earlier), strict=False):
        for kind in table.keys() - {"root"}:
            table[kind] = sorted({*table[kind], *before[kind]})
    return json.dumps(tables)


def _watch_imports(reads: _Reads) -> None:
    find_spec = FileFinder.find_spec

    def find_spec_and_note(self: FileFinder, fullname: str, target: Any = None) -> ModuleSpec | None:
        spec = find_spec(self, fullname, target)
        kind = reads.missed if spec is None else reads.looked_up
        reads.note(kind, os.path.join(self.path or ".", fullname.rpartition(".")[2]))
        return spec

    FileFinder.find_spec = find_spec_and_note  # type: ignore[assignment,method-assign]


def _watch_stat(reads: _Reads) -> None:
    for name in ("stat", "lstat"):
        inner = getattr(os, name)

        def stat_and_note(path: Any, *arguments: Any, _inner: Any = inner, **options: Any) -> os.stat_result:
            try:
                result: os.stat_result = _inner(path, *arguments, **options)
            except OSError:
                reads.note(reads.missed, path)
                raise
            reads.note(reads.looked_up, path)
            return result

        for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if inner in supported:
                supported.add(stat_and_note)
        setattr(os, name, stat_and_note)
