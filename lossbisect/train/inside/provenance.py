"""The provenance line: which code this process really imported, in its own words.

``megatron.core`` may come from a submodule, an installed package, or a copy baked into an image, and nothing in a log
tells which. So the run says it itself, as soon as ``megatron.core`` has been imported.
"""

import importlib.util
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["PREFIX", "announce"]

PREFIX = "lossbisect-provenance: "


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False, env=environment
        )
    except OSError:  # no git on this machine
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _commit_and_cleanliness(file: Path) -> tuple[str | None, bool | None]:
    """HEAD of the tree that tracks ``file``, and whether its tracked files are unchanged; None where no tree does."""
    if not _git(file.parent, "ls-files", "--error-unmatch", file.name):
        return None, None
    commit = _git(file.parent, "rev-parse", "HEAD")
    changes = _git(file.parent, "status", "--porcelain", "--untracked-files=no", "--", ":/megatron")
    return commit, None if changes is None else changes == ""


def _origin(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def announce(core: ModuleType, lane: str) -> None:
    """Print the provenance line, from the first rank only.

    Args:
        core: The imported ``megatron.core``.
        lane: Name of the lane.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    file = Path(core.__file__ or "").resolve()
    commit, is_clean = _commit_and_cleanliness(file)
    line = {
        "megatron_core_file": str(file),
        "megatron_core_version": str(getattr(core, "__version__", "unknown")),
        "mcore_commit": commit,
        "is_clean": is_clean,
        "megatron_bridge_file": _origin("megatron.bridge"),
        "python": platform.python_version(),
        "torch": str(getattr(sys.modules.get("torch"), "__version__", "not imported")),
        "lane": lane,
    }
    print(f"\n{PREFIX}{json.dumps(line)}", flush=True)  # noqa: T201  # the trainer's console log is the channel
