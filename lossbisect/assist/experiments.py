"""Folders that earlier runs left behind, and that a next run may go on from without saying so.

Most of Bridge's recipes save to and load from ``nemo_experiments/default/checkpoints`` in the folder that they are
started from, whatever the recipe. Whether there is something to load is told by two files, here as in Bridge's
``checkpoint_exists``: ``latest_train_state.pt`` and Megatron-LM's ``latest_checkpointed_iteration.txt``.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lossbisect.assist.findings import Family, Finding, Severity
from lossbisect.bisect.repository import quoted

__all__ = [
    "ASIDE",
    "Experiment",
    "age_text",
    "default_folders",
    "find_experiments",
    "judge_experiments",
    "located",
    "size_text",
]

ASIDE = ".lossbisect-aside"
"""Folder into which ``lossbisect clean`` moves things, beside where they were."""

_NAMES = ("nemo_experiments", "NeMo_experiments")
_TRACKERS = ("latest_train_state.pt", "latest_checkpointed_iteration.txt")
_ITERATION = re.compile(r"iter_(\d+)")
_NOT_ENTERED = {ASIDE, ".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages", "src", "tests", "docs"}
_DEEPEST = 3
_MOST_FOLDERS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A folder that earlier runs wrote.

    Attributes:
        path: The folder.
        is_default: It has the name that Bridge's recipes write to and load from by default.
        checkpoints: Folders in it that a run would load from, with the iteration that it would go on from, or None
            where that can't be told.
        size_bytes: Bytes of all files in it.
        files: Number of files.
        changed_s: When something in it was last changed, seconds since the epoch.
    """

    path: Path
    is_default: bool
    checkpoints: tuple[tuple[Path, int | None], ...]
    size_bytes: int
    files: int
    changed_s: float


def find_experiments(places: Iterable[Path]) -> tuple[Experiment, ...]:
    """The experiment folders in some places, each once, by path.

    A place may be such a folder itself. Otherwise it is searched for folders with Bridge's default name, and, three
    levels deep, for checkpoint folders of any other name.
    """
    found: dict[Path, Experiment] = {}
    for place in map(located, places):
        if not place.is_dir():
            continue
        paths = [place] if place.name in _NAMES or _is_loadable(place) else list(_search(place))
        for path in paths:
            if path not in found:
                found[path] = _look(path)
    return tuple(found[path] for path in sorted(found))


def default_folders(place: Path) -> tuple[Path, ...]:
    """The folders of Bridge's default name right in a place: what a run that is started there may go on from."""
    return tuple(path for name in _NAMES if (path := place / name).is_dir())


def judge_experiments(experiments: Iterable[Experiment], *, now_s: float) -> tuple[Finding, ...]:
    """What is to be said about experiment folders.

    Args:
        experiments: The folders.
        now_s: The time, seconds since the epoch.
    """
    return tuple(_judge(experiment, now_s) for experiment in experiments)


def _judge(experiment: Experiment, now_s: float) -> Finding:
    age = age_text(now_s - experiment.changed_s)
    about = f"{size_text(experiment.size_bytes)}, last changed {age} ago"
    loads = [_resumes(folder, iteration, experiment.path) for folder, iteration in experiment.checkpoints]
    if loads and experiment.is_default:
        check, severity = "stale-experiment", Severity.PROBLEM
        what = f"a Bridge recipe started in {experiment.path.parent} can silently go on from {_some(loads)} ({about})"
    elif loads:
        check, severity = "checkpoint-folder", Severity.WARNING
        what = f"a run that is told to save and load here goes on from {_some(loads)} ({about})"
    else:
        check, severity = "old-experiment", Severity.NOTE
        what = f"earlier runs without a checkpoint ({about}): a next run's TensorBoard events mix with theirs"
    return Finding(
        check=check,
        family=Family.EXPERIMENTS,
        severity=severity,
        where=str(experiment.path),
        what=what,
        remedy=f"lossbisect clean {quoted(experiment.path)} --yes",
    )


def _resumes(folder: Path, iteration: int | None, root: Path) -> str:
    name = "this folder" if folder == root else str(folder.relative_to(root))
    return f"{name} at iteration {iteration}" if iteration is not None else name


def _some(words: list[str]) -> str:
    return words[0] + (f" (or {len(words) - 1} others)" if len(words) > 1 else "")


def located(place: Path) -> Path:
    """The place's full path; a symbolic link stays one, since the link is what is moved."""
    path = Path(os.path.abspath(place))  # noqa: PTH100  # Path.absolute keeps '..'
    return path.parent.resolve() / path.name


def _search(place: Path) -> Iterator[Path]:
    """Folders to look at, the outermost of nested ones only; no symbolic link is followed, but one may be the find."""
    level, seen = [place], 0
    for depth in range(_DEEPEST + 1):
        deeper = []
        for folder in level:
            for entry in _entries(folder):
                path, is_link = Path(entry.path), entry.is_symlink()
                if entry.name in _NAMES and path.is_dir():
                    yield path
                elif is_link or not entry.is_dir() or entry.name in _NOT_ENTERED or _is_foreign(path):
                    continue
                elif _is_loadable(path):
                    yield path
                elif depth < _DEEPEST:
                    deeper.append(path)
        seen += len(deeper)
        if seen > _MOST_FOLDERS:
            return
        level = deeper


def _is_foreign(path: Path) -> bool:
    """Another git checkout or an environment: not this place's experiments."""
    return (path / ".git").exists() or (path / "pyvenv.cfg").exists()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # no right to look, or gone meanwhile
        return []


def _is_loadable(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _TRACKERS)


def _look(path: Path) -> Experiment:
    checkpoints: list[tuple[Path, int | None]] = []
    size, files, changed = 0, 0, path.lstat().st_mtime
    for folder, names, entries in os.walk(path):
        here = Path(folder)
        names.sort()
        if any(name in entries for name in _TRACKERS):
            checkpoints.append((here, _iteration(here, names)))
        for name in entries:
            try:
                about = (here / name).lstat()
            except OSError:
                continue
            size, files, changed = size + about.st_size, files + 1, max(changed, about.st_mtime)
    return Experiment(
        path=path,
        is_default=path.name in _NAMES,
        checkpoints=tuple(checkpoints),
        size_bytes=size,
        files=files,
        changed_s=changed,
    )


def _iteration(folder: Path, names: list[str]) -> int | None:
    """The iteration a run would go on from: Megatron-LM's tracker says it, Bridge's is a torch file."""
    try:
        text = (folder / "latest_checkpointed_iteration.txt").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        text = ""
    if text.isdecimal():
        return int(text)
    numbers = [int(match[1]) for name in names if (match := _ITERATION.fullmatch(name))]
    return max(numbers, default=None)


def size_text(size_bytes: int) -> str:
    """A size for a person, such as ``1.5 GB``."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def age_text(seconds: float) -> str:
    """A stretch of time for a person, such as ``3 days``."""
    value = max(0.0, seconds)
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if value >= length:
            count = int(value // length)
            return f"{count} {unit}" + ("s" if count > 1 else "")
    return "less than a minute"
