"""Bytes of a log to a `RunLog`: `read_log` looks at the file and chooses who reads it."""

from pathlib import Path

from lossbisect.errors import UnknownFormatError
from lossbisect.parsers.megatron import read_megatron
from lossbisect.parsers.nemo import read_nemo
from lossbisect.parsers.runlog import Attempt, Failure, LossKind, Note, RunLog
from lossbisect.parsers.scalars import is_scalars, read_scalars
from lossbisect.parsers.source import BlockReader, open_log

__all__ = ["Attempt", "Failure", "LossKind", "Note", "RunLog", "read_log"]


def read_log(path: Path | str) -> RunLog:
    """The run that a log tells.

    A log that surely is Megatron's but holds no training row (a run that failed at its start) comes back with an empty
    table, its configuration and its failure.

    Args:
        path: A log of Megatron-LM, Megatron Bridge, a fork or NeMo, plain or packed with gzip, bzip2 or xz; or our own
            ``scalars.ndjson``.

    Raises:
        ParseError: The file is missing, a directory, not readable or empty, or a scalars file is damaged.
        UnknownFormatError: Nothing in it looks like a log of a format that lossbisect knows.
    """
    path = Path(path)
    with open_log(path) as stream:
        reader = BlockReader(stream, path)
        if is_scalars(reader.head()):
            return read_scalars(reader, path)
        log = read_megatron(reader, path)
    if (log is None or log.iterations.is_empty()) and path.is_file():
        with open_log(path) as stream:
            log = read_nemo(BlockReader(stream, path), path) or log
    if log is not None:
        return log
    raise UnknownFormatError(
        f"{path}: no iteration record found. Not a log of Megatron-LM or Megatron Bridge? "
        "See 'lossbisect parse --formats'."
    )
