"""Where ``lossbisect mcore`` keeps what the submodule was at, so that it can go back.

The record is in the submodule's git directory: it goes where the checkout goes, and no working tree sees it.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from lossbisect.errors import StateError

__all__ = ["Move", "read_moves", "write_moves"]

_NAME = "lossbisect-mcore.json"
_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One switch of the submodule.

    Attributes:
        at: When, ISO 8601 in UTC.
        before: Full SHA that was checked out.
        branch: The branch that was checked out, or None.
        after: Full SHA that it was switched to.
        name: What the user called that.
        kept: Ref that keeps ``before`` alive where no branch or tag holds it, or None.
    """

    at: str
    before: str
    branch: str | None
    after: str
    name: str
    kept: str | None = None


def read_moves(git_dir: Path) -> tuple[Move, ...]:
    """The switches that can be undone, oldest first.

    Raises:
        StateError: The record can't be read.
    """
    file = git_dir / _NAME
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        if told["schema_version"] != _VERSION:
            raise ValueError(f"its version is {told['schema_version']}")
        return tuple(Move(**move) for move in told["moves"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"{file}: not a record of 'lossbisect mcore' ({error}). Move it away; 'lossbisect mcore sync' goes back to "
            "the commit that Bridge wants."
        ) from error


def write_moves(git_dir: Path, moves: tuple[Move, ...]) -> None:
    """Replace the record, whole or not at all.

    Raises:
        StateError: It can't be written.
    """
    file, half = git_dir / _NAME, git_dir / f"{_NAME}.half"
    try:
        if not moves:  # nothing left to undo: the checkout is as if nothing had been switched
            file.unlink(missing_ok=True)
            return
        with half.open("w", encoding="utf-8") as text:
            json.dump({"schema_version": _VERSION, "moves": [asdict(move) for move in moves]}, text, indent=2)
            text.flush()
            os.fsync(text.fileno())
        half.replace(file)
    except OSError as error:
        raise StateError(f"{file}: can't be written ({error.strerror}), so nothing was switched.") from error
