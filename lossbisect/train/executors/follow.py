"""A file that another machine writes, line by line as it grows."""

from pathlib import Path

from lossbisect.redact import redact
from lossbisect.train.executors.base import OnLine

__all__ = ["Follower"]


class Follower:
    """Hands on the whole lines of a file that weren't there at the last reading."""

    def __init__(self, path: Path, on_line: OnLine) -> None:
        """Read nothing yet; the file need not be there."""
        self._path = path
        self._on_line = on_line
        self._position = 0
        self._rest = b""

    def read(self) -> None:
        """Hand on what is new."""
        if self._on_line is None:
            return
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                new = file.read()
        except OSError:
            return
        self._position += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            self._on_line(redact(line.decode("utf-8", errors="replace").rstrip("\r")))
