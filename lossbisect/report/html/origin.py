"""What a page was made from and by: command, files, versions. Looks at files; the rest of a page doesn't."""

import hashlib
import os
import platform
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lossbisect import __version__
from lossbisect.errors import LossbisectError
from lossbisect.redact import redact_words
from lossbisect.report.html.model import Code, Facts, Page, Section, Table

__all__ = ["Origin", "SourceFile", "again", "check_page_path", "files_section", "origin_of", "write_page"]

_HASHED_BYTES = 256 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A file that a page rests on.

    Attributes:
        path: As it was named.
        size_bytes: None where it isn't there (any more).
        changed_at: Time of its last change, ISO 8601 in UTC.
        sha256: None for a file above 256 MB.
    """

    path: str
    size_bytes: int | None
    changed_at: str | None
    sha256: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a page comes from.

    Attributes:
        command: The command line that made it, secrets masked; empty where it wasn't one.
        folder: The folder that its paths are relative to.
        made_at: ISO 8601 in UTC.
        made_by: Versions of lossbisect and Python.
        files: What was read.
    """

    command: str
    folder: str
    made_at: str
    made_by: str
    files: tuple[SourceFile, ...]


def origin_of(arguments: Sequence[str], paths: Iterable[Path | str]) -> Origin:
    """Describe this process and these files, now.

    Args:
        arguments: The words after ``lossbisect`` on the command line; none if it wasn't started there.
        paths: The files that were read; the same one twice is listed once.
    """
    return Origin(
        command=shlex.join(["lossbisect", *redact_words(arguments)]) if arguments else "",
        folder=str(Path.cwd()),
        made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        made_by=f"lossbisect {__version__}, Python {platform.python_version()}",
        files=tuple(_file(path) for path in dict.fromkeys(map(str, paths))),
    )


def check_page_path(path: Path) -> None:
    """Refuse a file that a page can't be written to.

    Raises:
        ValueError: Another ending than .html, or a folder that isn't there or can't be written to.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"'{path.name}' must end in .html.")
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder.")
    if not path.parent.is_dir():
        raise ValueError(f"The folder '{path.parent}' does not exist.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"'{path}' is not writable.")


def write_page(page: Page, path: Path) -> None:
    """Write a page's one file.

    Raises:
        LossbisectError: It could not be written.
    """
    from lossbisect.report.html.render import page_html

    try:
        path.write_text(page_html(page), encoding="utf-8")
    except OSError as error:
        raise LossbisectError(
            f"{path}: the page could not be written ({error.strerror}). Name another file."
        ) from error


def files_section(origin: Origin) -> Table:
    """What was read, so that a reader can tell whether it is still the same."""
    return Table(
        head=["file", "bytes", "last changed", "SHA-256"],
        rows=[
            [
                file.path,
                "gone" if file.size_bytes is None else f"{file.size_bytes:,}",
                file.changed_at or "",
                (file.sha256 or "")[:16],
            ]
            for file in origin.files
        ],
        numeric=frozenset({1}),
    )


def again(origin: Origin, *commands: str) -> Section:
    """How to come to the same answer again."""
    lines = [command for command in (origin.command, *commands) if command]
    facts = Facts([("folder", origin.folder), ("made", f"{origin.made_at} by {origin.made_by}")])
    return Section(title="Once more", blocks=[*(Code(line) for line in dict.fromkeys(lines)), facts])


def _file(path: str) -> SourceFile:
    try:
        status = Path(path).stat()
        is_small = Path(path).is_file() and status.st_size <= _HASHED_BYTES
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest() if is_small else None
    except OSError:
        return SourceFile(path=path, size_bytes=None, changed_at=None, sha256=None)
    changed = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return SourceFile(path=path, size_bytes=status.st_size, changed_at=changed, sha256=digest)
