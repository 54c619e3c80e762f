"""Bytes of a log to a `RunLog`: `read_log` looks at the file and chooses who reads it."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from lossbisect.parsers.choose import FORMATS, read_parts
from lossbisect.parsers.files import STDIN, saved_stdin
from lossbisect.parsers.runlog import Attempt, Failure, LossKind, Note, RunLog
from lossbisect.schema import OWN_COLUMNS

__all__ = ["FORMATS", "Attempt", "Failure", "LossKind", "Note", "RunLog", "read_log"]


def read_log(path: Path | str, *parts: Path | str, columns: Collection[str] | None = None) -> RunLog:
    """The run that a log tells.

    A log that surely is Megatron's but holds no training row (a run that failed at its start) comes back with an empty
    table, its configuration and its failure.

    Args:
        path: A log in one of `FORMATS`, plain or packed with gzip, bzip2, xz or zstd; a folder of event files; or
            ``-`` for standard input.
        parts: Further files that go on with it, in order; lines are counted through all of them.
        columns: The printed values that are wanted, by column; those that the log lacks are left out. By default all.
            Fewer columns take less memory; rows, and what they mean, stay the same.

    Raises:
        ParseError: A file is missing, not readable or empty, or is damaged.
        UnknownFormatError: Nothing in it looks like a log of a format that lossbisect knows.
    """
    paths = [Path(name) for name in (path, *parts)]
    if Path(STDIN) not in paths:
        log = read_parts(paths, paths[0], columns)
    else:
        with saved_stdin() as saved:
            log = read_parts([saved if name == Path(STDIN) else name for name in paths], paths[0], columns)
    if columns is None:
        return log
    wanted = {*OWN_COLUMNS, *columns}
    return replace(log, iterations=log.iterations.select(name for name in log.iterations.columns if name in wanted))
