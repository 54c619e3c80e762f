"""Several parts of one run, each in a process of its own: the way to train, save, and go on from what was saved.

    python -m lossbisect.train.inside.parts SCRIPT.py ARGS... --then -m MODULE ARGS...

All but the last part are forked off, so that none finds anything in memory that another one left there.
"""

import atexit
import os
import sys
import traceback
from collections.abc import Iterable, Sequence

from lossbisect.train.inside.stage import hand_over

__all__ = ["THEN"]

THEN = "--then"
"""The word between two parts."""


def _split(words: Iterable[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == THEN:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _hand_over(words: Sequence[str]) -> None:
    is_module = words[0] == "-m"
    target, *arguments = words[is_module:]
    hand_over(target, arguments, is_module=is_module)


def _exit_code(error: BaseException) -> int:
    """What the interpreter would exit with, after printing what it would print."""
    if isinstance(error, SystemExit) and not isinstance(error.code, str):
        return int(error.code or 0)
    if isinstance(error, SystemExit):
        print(error.code, file=sys.stderr)  # noqa: T201  # as the interpreter does
    else:
        traceback.print_exception(error)
    return 1


def _be_the_part(words: Sequence[str]) -> None:
    code = 0
    try:
        _hand_over(words)
    except BaseException as error:  # as the interpreter does
        code = _exit_code(error)
    finally:
        atexit._run_exitfuncs()  # noqa: SLF001  # os._exit leaves them out
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(words: list[str]) -> None:
    """Run the parts one after another; the first that fails ends the run with its exit code."""
    *first, last = _split(words)
    for part in first:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _be_the_part(part)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code < 0:
            os.kill(os.getpid(), -code)
        if code:
            sys.exit(code)
    _hand_over(last)


if __name__ == "__main__":
    main(sys.argv[1:])
