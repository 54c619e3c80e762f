"""The machine: free space, GPUs, Slurm. Facts are gathered here, and judged by pure functions."""

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossbisect.assist.experiments import size_text
from lossbisect.assist.findings import Family, Finding, Severity

__all__ = ["Gpus", "Space", "gather_gpus", "gather_slurm", "gather_space", "judge_gpus", "judge_slurm", "judge_space"]

_GB = 10**9
_LOW_BYTES, _FULL_BYTES = 10 * _GB, 1 * _GB
"""Trees of two commits, their runs and a checkpoint of a small model take a few GB."""
_LOW_INODES, _FULL_INODES = 100_000, 10_000
"""A tree of Bridge and Megatron-LM has about 6,000 files, and a bisect keeps several."""
_TIMEOUT_S = 20.0
_CUDA = re.compile(r"CUDA (?:UMD )?Version\s*:\s*([\d.]+)")
"""In the head of what ``nvidia-smi`` prints; newer drivers tell two versions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """What is left on the file system of a folder.

    Attributes:
        path: The folder.
        purpose: What is written there.
        free_bytes: Bytes that this user may still write.
        free_inodes: Files that may still be made; None where the file system has no limit of its own.
        is_writable: Whether this user may write into the folder.
    """

    path: Path
    purpose: str
    free_bytes: int
    free_inodes: int | None
    is_writable: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpus:
    """The GPUs that ``nvidia-smi`` sees.

    Attributes:
        names: Model of each.
        used_mib: Memory in use on each, MiB.
        driver: Version of the driver.
        cuda: Highest CUDA version that the driver supports.
        failure: What ``nvidia-smi`` said instead; then there are no GPUs.
    """

    names: tuple[str, ...] = ()
    used_mib: tuple[int, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    failure: str | None = None


def gather_space(root: Path, cache: Path) -> tuple[Space, ...]:
    """What is left where runs write: each file system once."""
    purposes = {root: "experiments", cache: "trees and runs of lossbisect", Path(tempfile.gettempdir()): "scratch"}
    seen: dict[int, Space] = {}
    for path, purpose in purposes.items():
        folder = next(parent for parent in (path, *path.parents) if parent.is_dir())
        device = folder.stat().st_dev
        if device not in seen:
            about = os.statvfs(folder)
            seen[device] = Space(
                path=folder,
                purpose=purpose,
                free_bytes=about.f_bavail * about.f_frsize,
                free_inodes=about.f_favail if about.f_files else None,
                is_writable=os.access(folder, os.W_OK),
            )
    return tuple(seen.values())


def judge_space(spaces: Sequence[Space]) -> tuple[Finding, ...]:
    """What is to be said about free space."""
    return tuple(finding for space in spaces for finding in _judge_space(space))


def _judge_space(space: Space) -> list[Finding]:
    left = f"{size_text(space.free_bytes)} free for {space.purpose}"
    advice = "Make room, or let lossbisect write elsewhere: export LOSSBISECT_CACHE_DIR=PATH."
    found = []
    if not space.is_writable:
        found.append(_finding("not-writable", Severity.WARNING, space.path, "you may not write here", advice))
    if space.free_bytes < _LOW_BYTES:
        severity = Severity.PROBLEM if space.free_bytes < _FULL_BYTES else Severity.WARNING
        found.append(_finding("disk", severity, space.path, f"only {left}", advice))
    if space.free_inodes is not None and space.free_inodes < _LOW_INODES:
        severity = Severity.PROBLEM if space.free_inodes < _FULL_INODES else Severity.WARNING
        what = f"only {space.free_inodes} more files can be made (inodes), however much space is left"
        found.append(_finding("inodes", severity, space.path, what, advice))
    return found or [_finding("disk", Severity.OK, space.path, left)]


def gather_gpus() -> Gpus | None:
    """What ``nvidia-smi`` says; None where there is no such program."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = _run("nvidia-smi", "--query-gpu=name,memory.used,driver_version", "--format=csv,noheader,nounits")
    if isinstance(query, str):
        return Gpus(failure=query)
    rows = [[cell.strip() for cell in line.split(",")] for line in query[0].splitlines() if line.count(",") == 2]
    banner = _run("nvidia-smi")
    cuda = _CUDA.search(banner[0]) if isinstance(banner, tuple) else None
    return Gpus(
        names=tuple(row[0] for row in rows),
        used_mib=tuple(int(row[1]) if row[1].isdecimal() else 0 for row in rows),
        driver=rows[0][2] if rows else None,
        cuda=cuda[1] if cuda else None,
    )


def judge_gpus(gpus: Gpus | None) -> tuple[Finding, ...]:
    """What is to be said about GPUs."""
    if gpus is None:
        what = "not on this machine, so there is no NVIDIA GPU to train on: use the lane cpu"
        return (_finding("gpu", Severity.NOTE, "nvidia-smi", what),)
    if gpus.failure is not None or not gpus.names:
        what = f"sees no GPU ({gpus.failure or 'an empty list'}): use the lane cpu"
        return (_finding("gpu", Severity.WARNING, "nvidia-smi", what),)
    models = Counter(gpus.names)
    listed = ", ".join(f"{count} x {name}" for name, count in models.items())
    cuda = f", CUDA up to {gpus.cuda}" if gpus.cuda else ""
    found = [_finding("gpu", Severity.OK, "nvidia-smi", f"{listed}, driver {gpus.driver}{cuda}")]
    if len(models) > 1:
        what = "GPUs of several models: the same run may round otherwise on each"
        found.append(_finding("mixed-gpus", Severity.WARNING, "nvidia-smi", what, "Choose with CUDA_VISIBLE_DEVICES."))
    busy = [str(index) for index, used in enumerate(gpus.used_mib) if used > 1024]
    if busy:
        what = f"memory is in use on GPU {', '.join(busy)}: another run may be on it"
        found.append(_finding("busy-gpu", Severity.NOTE, "nvidia-smi", what))
    return tuple(found)


def gather_slurm() -> dict[str, str | None]:
    """Where Slurm's programs are, by name; None for one that isn't there."""
    return {name: shutil.which(name) for name in ("sbatch", "sinfo")}


def judge_slurm(programs: dict[str, str | None]) -> tuple[Finding, ...]:
    """What is to be said about Slurm."""
    there = [name for name, path in programs.items() if path]
    if len(there) == len(programs):
        return (_finding("slurm", Severity.OK, "slurm", f"{' and '.join(there)} are on PATH"),)
    if there:
        missing = " and ".join(name for name, path in programs.items() if not path)
        what = f"{' and '.join(there)} on PATH, but not {missing}: Slurm's set-up is incomplete"
        return (_finding("slurm", Severity.WARNING, "slurm", what),)
    return (_finding("slurm", Severity.NOTE, "slurm", "not on this machine: runs are local"),)


def _run(*command: str) -> tuple[str] | str:
    """A program's output in a tuple, or what went wrong."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        return (done.stdout + done.stderr).strip().splitlines()[-1] if (done.stdout + done.stderr).strip() else "failed"
    return (done.stdout,)


def _finding(check: str, severity: Severity, where: object, what: str, advice: str = "") -> Finding:
    return Finding(check=check, family=Family.MACHINE, severity=severity, where=str(where), what=what, advice=advice)
