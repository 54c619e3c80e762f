"""The one place of this package that lets git change something of the user's: a fetch, a ref, a checkout.

Unlike the bisect's own trees this is the user's repository, so the user's configuration counts. Only variables that
would send the command to another repository are left out.
"""

import os
import subprocess
from pathlib import Path

from lossbisect.errors import GitError
from lossbisect.redact import redact

__all__ = ["git_write"]

_ELSEWHERE = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
}


def git_write(folder: Path, *arguments: str) -> None:
    """Run git in a folder, and let it finish even when the user presses Ctrl-C: half a checkout helps nobody.

    Raises:
        GitError: It failed; the message ends with what git said.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    process = subprocess.Popen(
        ["git", "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment | {"GIT_TERMINAL_PROMPT": "0"},
        start_new_session=True,
    )
    interrupted: KeyboardInterrupt | None = None
    while True:
        try:
            output, _ = process.communicate()
            break
        except KeyboardInterrupt as error:
            if arguments[0] == "fetch":  # it changes no file, and may wait for the network for long
                process.terminate()
            interrupted = error
    if interrupted is not None:
        raise interrupted
    if process.returncode:
        said = output.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        word = next(argument for argument in arguments if not argument.startswith("-") and "=" not in argument)
        raise GitError(f"{folder}: 'git {word}' failed: {redact(_telling(said))}")


def _telling(lines: list[str]) -> str:
    """The line that says what went wrong: git's own error before any hint."""
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
