"""Moving stale experiment folders aside, and back. Nothing is ever deleted or copied.

A folder is renamed into ``.lossbisect-aside/ID/`` beside it: the same file system, so it is one step that is done or
not done. The record is on the disk before the first one, and holds nothing that a later step would have to mend:
whether an item was moved is told by where it is. So a kill at any moment leaves a record that is right.
"""

import json
import os
import secrets
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lossbisect.assist.experiments import ASIDE, Experiment
from lossbisect.errors import StateError

__all__ = ["Moved", "Record", "find_records", "move_aside", "new_id", "open_files", "restore", "tracked_files"]

_RECORD, _RESTORED = "record.json", "restored.json"
_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """One folder that was to be moved.

    Attributes:
        origin: Where it was.
        aside: Where it was moved to.
        size_bytes: Bytes of all files in it.
        files: Number of files.
        changed_s: When something in it was last changed, seconds since the epoch.
    """

    origin: Path
    aside: Path
    size_bytes: int
    files: int
    changed_s: float

    @property
    def is_aside(self) -> bool:
        """Whether it is in the aside place now."""
        return os.path.lexists(self.aside)


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What one call moved out of one folder.

    Attributes:
        id: Its name; calls that move out of several folders give all their records one ID.
        file: The record on the disk.
        at: When, ISO 8601 in UTC.
        items: What was to be moved; `Moved.is_aside` says what was.
    """

    id: str
    file: Path
    at: str
    items: tuple[Moved, ...]


def new_id(now: datetime | None = None) -> str:
    """A name for a record that sorts by time."""
    return f"{now or datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def move_aside(experiments: Sequence[Experiment], record_id: str) -> tuple[Record, ...]:
    """Move folders into ``.lossbisect-aside/record_id`` beside each of them.

    Raises:
        StateError: A folder can't be moved; what was moved before it stays moved and is in the record.
    """
    records = []
    for parent in dict.fromkeys(experiment.path.parent for experiment in experiments):
        record = _planned(parent, record_id, [item for item in experiments if item.path.parent == parent])
        _write(record)
        records.append(record)
        for item in record.items:
            _rename(
                item.origin,
                item.aside,
                f"What was moved before it comes back with: lossbisect clean --restore {record_id}",
            )
    return tuple(records)


def find_records(places: Iterable[Path]) -> tuple[Record, ...]:
    """Records of folders moved out of these places or folders up to two levels below them, oldest first."""
    files: set[Path] = set()
    for place in (place.resolve() for place in places):
        for pattern in ("", "*/", "*/*/"):
            files.update(place.glob(f"{pattern}{ASIDE}/*/{_RECORD}"))
    return tuple(sorted((_read(file) for file in files), key=lambda record: (record.id, str(record.file))))


def restore(records: Sequence[Record]) -> tuple[Moved, ...]:
    """Put back what the records say was moved; return what was put back.

    Raises:
        StateError: Something new is where a folder was; nothing at all is moved then.
    """
    back = [item for record in records for item in record.items if item.is_aside]
    for item in back:
        if os.path.lexists(item.origin):
            raise StateError(
                f"{item.origin}: something new is in the way, so nothing was put back. Move it away first, such as "
                "with 'lossbisect clean'; the old one is in "
                f"{item.aside}"
            )
        if not item.origin.parent.is_dir():
            raise StateError(f"{item.origin.parent}: gone, so nothing was put back. Make the folder, then try again.")
    for item in back:
        _rename(item.aside, item.origin, "What came before it was put back")
    for record in records:
        record.file.replace(record.file.with_name(_RESTORED))
    return tuple(back)


def open_files(path: Path, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Processes of this machine that have a file below ``path`` open or work in it; only those we may look at."""
    held: list[int] = []
    inside = f"{path.resolve()}{os.sep}"
    for process in proc.glob("[0-9]*"):
        try:
            links = [process / "cwd", *(process / "fd").iterdir()]
        except OSError:  # another user's, or it has just ended
            continue
        for link in links:
            try:
                target = f"{link.readlink()}{os.sep}"
            except OSError:
                continue
            if target.startswith(inside):
                held.append(int(process.name))
                break
    return tuple(sorted(held))


def _planned(parent: Path, record_id: str, experiments: Iterable[Experiment]) -> Record:
    folder = parent / ASIDE / record_id
    items = tuple(
        Moved(
            origin=item.path,
            aside=folder / item.path.name,
            size_bytes=item.size_bytes,
            files=item.files,
            changed_s=item.changed_s,
        )
        for item in experiments
    )
    return Record(id=record_id, file=folder / _RECORD, at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", items=items)


def _write(record: Record) -> None:
    """The record as JSON, whole on the disk or not there at all; git is told to leave the aside place alone."""
    folder = record.file.parent
    text = json.dumps(
        {
            "schema_version": _VERSION,
            "id": record.id,
            "at": record.at,
            "items": [
                {
                    "origin": str(item.origin),
                    "aside": item.aside.name,
                    "size_bytes": item.size_bytes,
                    "files": item.files,
                    "changed_s": item.changed_s,
                }
                for item in record.items
            ],
        },
        indent=2,
    )
    try:
        folder.mkdir(parents=True)
        (folder.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        half = folder / f"{_RECORD}.half"
        with half.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        half.replace(record.file)
    except OSError as error:
        raise StateError(f"{folder}: can't be written ({error.strerror}), so nothing was moved.") from error


def _read(file: Path) -> Record:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        if told["schema_version"] != _VERSION:
            raise ValueError(f"its version is {told['schema_version']}")
        items = tuple(
            Moved(
                origin=Path(item["origin"]),
                aside=file.parent / Path(item["aside"]).name,
                size_bytes=int(item["size_bytes"]),
                files=int(item["files"]),
                changed_s=float(item["changed_s"]),
            )
            for item in told["items"]
        )
        return Record(id=str(told["id"]), file=file, at=str(told["at"]), items=items)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{file}: not a record of 'lossbisect clean' ({error}). What was moved is in its folder; move it by hand."
        ) from error


def _rename(source: Path, target: Path, afterwards: str) -> None:
    try:
        source.rename(target)
    except OSError as error:
        why = "it is a mount point" if source.is_mount() else error.strerror or str(error)
        raise StateError(f"{source}: can't be moved to {target} ({why}). {afterwards}.") from error


def tracked_files(path: Path) -> bool:
    """Whether git keeps files of a folder."""
    try:
        done = subprocess.run(
            ["git", "-C", str(path.parent), "ls-files", "-z", "--", path.name], capture_output=True, check=False
        )
    except OSError:  # no git here, so nothing is kept by it
        return False
    return done.returncode == 0 and bool(done.stdout)
