"""Files that can be made again: written whole or not at all, and never a reason for a run to fail."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["put"]


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
