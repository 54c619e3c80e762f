"""A run's files in the store: put in place whole, or not at all."""

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from lossbisect.redact import line_redactor

__all__ = ["curve_of", "keep_files", "orphans", "size_of", "take_files"]

_PARTIAL = ".partial"
_KEPT = frozenset({".log", ".ndjson", ".json"})
_REPEATABLE = frozenset({"lm loss", "grad-norm"})
_ORPHAN_AGE_S = 3600.0
"""Younger folders may belong to a process that is about to write its row."""


def keep_files(out: Path, place: Path) -> int:
    """Copy a run's own files, its console without secrets, to a folder that comes into being whole.

    Returns:
        Their size in bytes.
    """
    partial = place.with_name(place.name + _PARTIAL)
    partial.mkdir(parents=True)
    try:
        for file in sorted(out.iterdir()):
            if file.suffix in _KEPT and file.is_file() and not file.is_symlink():
                _copy(file, partial / file.name, line_redactor(os.environ) if file.suffix == ".log" else None)
        partial.rename(place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync(place.parent)
    return size_of(place)


def _copy(source: Path, target: Path, redacted: Callable[[bytes], bytes] | None) -> None:
    with source.open("rb") as lines, target.open("wb") as file:
        if redacted is None:
            shutil.copyfileobj(lines, file)
        else:
            file.writelines(map(redacted, lines))
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_files(place: Path, out: Path) -> None:
    """Copy a stored run's files into a run's folder.

    Raises:
        OSError: They aren't there any more.
    """
    shutil.copytree(place, out, dirs_exist_ok=True)


def size_of(place: Path) -> int:
    """Bytes of all files in a folder; 0 if it isn't there."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def orphans(folder: Path, known: frozenset[str]) -> list[Path]:
    """Folders without a row, an hour old at least: what a killed process left behind."""
    if not folder.is_dir():
        return []
    before_s = time.time() - _ORPHAN_AGE_S
    return sorted(path for path in folder.iterdir() if path.name not in known and path.stat().st_mtime < before_s)


def curve_of(scalars: Path) -> tuple[str, int, float | None]:
    """Digest of the recorded losses and gradient norms, the number of losses, and the last one if it's finite."""
    digest, losses, last = hashlib.sha256(), 0, None
    try:
        lines = scalars.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a killed run
        if row.get("tag") not in _REPEATABLE:
            continue
        digest.update(f"{row['tag']} {row['iteration']} {row['value']!r} {row.get('nonfinite')}\n".encode())
        if row["tag"] == "lm loss":
            losses += 1
            last = row["value"] if isinstance(row["value"], float) and math.isfinite(row["value"]) else None
    return digest.hexdigest(), losses, last
