"""Which package comes from which distribution: asked of all metadata that is installed, and so worth remembering.

transformers asks at its import, which reads the metadata of every package: an eighth of a warm parent's start.
"""

import importlib.metadata
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lossbisect.train.inside.cached import put

__all__ = ["remembered"]


@contextmanager
def remembered(cache: Path) -> Iterator[None]:
    """Answer `importlib.metadata.packages_distributions` from the cache, as long as no folder on ``sys.path`` changes.

    Args:
        cache: Directory of things that can be made again.
    """
    file = cache / "distributions.json"
    ask = importlib.metadata.packages_distributions

    def answer() -> Mapping[str, list[str]]:
        state = _state()
        with suppress(OSError, ValueError, KeyError, TypeError):
            known = json.loads(file.read_text(encoding="utf-8"))
            if known["state"] == state:
                found: Mapping[str, list[str]] = known["found"]
                return found
        found = ask()
        put(file, json.dumps({"state": state, "found": found}).encode())
        return found

    importlib.metadata.packages_distributions = answer
    try:
        yield
    finally:
        importlib.metadata.packages_distributions = ask


def _state() -> list[list[object]]:
    """Whatever is installed or removed makes or deletes a folder beside the packages."""
    return [[path, Path(path).stat().st_mtime_ns] for path in sys.path if Path(path).is_dir()]
