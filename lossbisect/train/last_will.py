"""Nothing is left over: what becomes of runs when this process is killed, and of processes that left their group.

A tool that is killed with ``kill -9`` can't clean up after itself. So a small shell beside it holds the commands that
end what goes on, and executes them when the pipe from the tool breaks. And a launcher that is killed leaves ranks that
made sessions of their own (`torch.distributed.run` does that): they are known by a variable that they inherited.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import which

__all__ = ["MARK", "LastWill", "end_strays", "kill_command"]

MARK = "LOSSBISECT_RUN"
"""Variable that all processes of a run inherit: the path of its console."""

_SHELL = r"""
trap '' INT TERM HUP
held=
while IFS= read -r line; do
    case $line in
        +*) held="$held
${line#+}" ;;
        -*) held=$(printf '%s\n' "$held" | grep -v "^${line#-} ") ;;
    esac
done
printf '%s\n' "$held" | while read -r key command; do
    [ -z "$command" ] || sh -c "$command" >/dev/null 2>&1 </dev/null &
done
"""


class LastWill:
    """Commands that are executed if this process dies before it takes them back. Safe from several threads."""

    def __init__(self) -> None:
        """Start the shell when it is first needed."""
        self._shell: subprocess.Popen[bytes] | None = None
        self._keys = count(1)
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, command: str) -> Iterator[None]:
        """Have ``command`` (one line for ``sh``) executed if this process dies within the block."""
        key = self._tell("+", command)
        try:
            yield
        finally:
            self._tell(f"-{key}")

    def close(self) -> None:
        """End the shell; nothing is executed that was taken back."""
        with self._lock:
            if self._shell is not None:
                assert self._shell.stdin is not None
                with suppress(OSError):
                    self._shell.stdin.close()
                self._shell.wait()
                self._shell = None

    def _tell(self, word: str, command: str = "") -> int:
        with self._lock:
            key = next(self._keys)
            if self._shell is None:
                self._shell = subprocess.Popen(
                    [which("sh") or "/bin/sh", "-c", _SHELL], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
            assert self._shell.stdin is not None
            line = f"+{key} {command}\n" if word == "+" else f"{word}\n"
            with suppress(OSError):  # a shell that was killed can't execute a will; the run itself goes on
                self._shell.stdin.write(line.encode())
                self._shell.stdin.flush()
            return key


def kill_command(group: int) -> str:
    """What ends a process group: politely, then by force."""
    return f"kill -TERM -{group}; sleep 10; kill -KILL -{group}"


def end_strays(mark: str) -> None:
    """Kill what is left of a run though it made a session of its own; only where ``/proc`` shows environments."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
