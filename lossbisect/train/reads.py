"""What a run took from the checkout, and whether a change of files touches it. The recording is `inside.reads`."""

import json
from dataclasses import dataclass
from pathlib import Path

from lossbisect.train.types import RunRecord

__all__ = ["Reads", "reads_of"]


_METADATA = (".dist-info", ".egg-info")
"""Folders that make a package known to ``importlib.metadata``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reads:
    """Paths in a checkout, relative to its root.

    Attributes:
        opened: Files that were opened.
        looked_up: Paths that were asked for and were there; a module by its path without a suffix.
        missed: The same that were not there.
        listed: Folders of which the names counted.
        handed_on: Files and folders of which everything counts: a subprocess worked with them.
    """

    opened: frozenset[str]
    looked_up: frozenset[str]
    missed: frozenset[str]
    listed: frozenset[str]
    handed_on: frozenset[str]

    def is_touched_by(self, path: str, *, is_same_file: bool) -> bool:
        """A change at a path may change the run.

        Args:
            path: The path that changed, as git writes it.
            is_same_file: The file was there before and still is, so that nothing is found or missed that wasn't.
        """
        if path in self.opened:
            return True
        if is_same_file and not self.handed_on:
            return False
        parts = path.split("/")
        parents = [*("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)), "."]
        if not self.handed_on.isdisjoint([path, *parents]):
            return True
        if is_same_file:
            return False
        if not self.listed.isdisjoint(parents) or any(part.endswith(_METADATA) for part in parts):
            return True
        # What an import of `a/b` finds: `a/b.py`, `a/b.cpython-312.so`, `a/b/__init__.py`, or any file in a new `a/b`.
        stem = "/".join([*parts[:-1], parts[-1].split(".")[0]])
        names = {path, stem, *([parents[0]] if stem.endswith("/__init__") else [])}
        return not self.looked_up.isdisjoint(names) or not self.missed.isdisjoint({*names, *parents})


def reads_of(record: RunRecord) -> Reads | None:
    """What a run took from the Megatron-LM tree; None if that isn't known of every rank of it."""
    files = sorted(record.out.glob("reads-*-of-*.json"))
    if record.spec.sources.mcore is None or not files or len(files) != int(files[0].stem.rpartition("-")[2]):
        return None
    tables = [table for file in files if (table := _table_of(file))]
    if len(tables) != len(files):
        return None
    kinds = ("opened", "looked_up", "missed", "listed", "handed_on")
    return Reads(**{kind: frozenset(path for table in tables for path in table[kind]) for kind in kinds})


def _table_of(file: Path) -> dict[str, list[str]] | None:
    """What was taken from the first root, which is that of Megatron-LM."""
    try:
        tables = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return tables[0] if tables else None
