"""Telling somebody: a command of the user's with the report on its standard input."""

import shlex
import subprocess

__all__ = ["notify"]

_TIMEOUT_S = 60.0


def notify(command: str, text: str) -> str | None:
    """Run a command with a report on its standard input. No shell takes part, and the report is no argument.

    Args:
        command: Words as a shell would split them.
        text: The report.

    Returns:
        What went wrong, in one sentence; None if it ended well. A notification that fails is no failure of a triage.
    """
    try:
        done = subprocess.run(
            shlex.split(command), input=text, text=True, timeout=_TIMEOUT_S, check=False, capture_output=True
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return f"--notify {command}: {error}"
    return f"--notify {command}: it ended with {done.returncode}" if done.returncode else None
