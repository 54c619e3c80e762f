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
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType

from lossbisect.train.inside import fingerprint

__all__ = ["PREFIX", "announcer"]

PREFIX = "lossbisect-provenance: "
_AT_START = "_LOSSBISECT_VARIABLES_AT_START"
"""Keeps the variables of the first start: a trainer may change them and start itself anew."""


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False, env=environment
        )
    except OSError:  # no git on this machine
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _commit_and_cleanliness(file: Path, part: str) -> tuple[str | None, bool | None]:
    """HEAD of the tree that tracks ``file``, and whether the tracked files in ``part`` are unchanged.

    None where no tree tracks it.
    """
    if not _git(file.parent, "ls-files", "--error-unmatch", file.name):
        return None, None
    commit = _git(file.parent, "rev-parse", "HEAD")
    changes = _git(file.parent, "status", "--porcelain", "--untracked-files=no", "--", f":/{part}")
    return commit, None if changes is None else changes == ""


def _origin(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def _flags() -> dict[str, str]:
    """Switches of torch that decide whether a run repeats itself, as they stand now; a trainer may turn them yet."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    asked: dict[str, Callable[[], object]] = {
        "deterministic_algorithms": lambda: torch.are_deterministic_algorithms_enabled(),
        "cudnn.deterministic": lambda: torch.backends.cudnn.deterministic,
        "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
        "float32_matmul_precision": lambda: torch.get_float32_matmul_precision(),
        "threads": lambda: torch.get_num_threads(),
    }
    told = {}
    for name, ask in asked.items():
        try:
            with warnings.catch_warnings(action="ignore"):
                told[name] = str(ask())
        except Exception as error:  # whatever a version of torch objects to, the run goes on
            told[name] = f"unknown ({type(error).__name__})"
    return told


def announcer(lane: str) -> Callable[[ModuleType], None]:
    """What to call with ``megatron.core`` once it's there; the variables are those of now, before the trainer begins.

    It prints the provenance line, from the first rank only.

    Args:
        lane: Name of the lane.
    """
    started_with = json.loads(
        os.environ.setdefault(_AT_START, json.dumps(fingerprint.variables(os.environ), sort_keys=True))
    )
    return partial(_announce, lane=lane, variables=started_with)


def _announce(core: ModuleType, lane: str, variables: Mapping[str, str]) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    file = Path(core.__file__ or "").resolve()
    commit, is_clean = _commit_and_cleanliness(file, "megatron")
    bridge = _origin("megatron.bridge")
    bridge_commit, bridge_is_clean = _commit_and_cleanliness(Path(bridge).resolve(), "src") if bridge else (None, None)
    driver, gpu = fingerprint.video() if lane == "cuda" else (None, None)
    torch = sys.modules.get("torch")
    line = {
        "megatron_core_file": str(file),
        "megatron_core_version": str(getattr(core, "__version__", "unknown")),
        "mcore_commit": commit,
        "is_clean": is_clean,
        "megatron_bridge_file": bridge,
        "bridge_commit": bridge_commit,
        "bridge_is_clean": bridge_is_clean,
        "python": platform.python_version(),
        "torch": str(getattr(torch, "__version__", "not imported")),
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "driver": driver,
        "gpu": gpu,
        "processor": fingerprint.processor(),
        "image": fingerprint.image(os.environ),
        "packages": fingerprint.installed(sys.path),
        "flags": _flags(),
        "variables": variables,
        "lane": lane,
    }
    # The trainer's console log is the channel. One piece: what another rank prints must not come before the line's end.
    print(f"\n{PREFIX}{json.dumps(line)}\n", end="", flush=True)  # noqa: T201
