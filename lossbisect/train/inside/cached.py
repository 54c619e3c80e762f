"""Files that can be made again: written whole or not at all, and never a reason for a run to fail."""

import marshal
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["put", "taken"]


def taken(file: Path) -> Any:
    """What `marshal` has kept in the file; None where there is nothing, or nothing that can be read."""
    try:
        return marshal.loads(file.read_bytes())  # noqa: S302  # written by us
    except (OSError, EOFError, ValueError, TypeError):
        return None


def put(file: Path, content: bytes) -> None:
    """Make the file, or its next version; a cache that can't be written costs time, nothing else."""
    unfinished = file.with_name(f"{os.getpid()}-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
