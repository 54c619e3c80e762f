"""A finished run as a `RunLog` with full-precision curves."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.train.types import RunRecord

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["count_losses", "read_curves", "read_run", "with_console"]

_LOSS_TAG = '"tag": "lm loss"'


def count_losses(scalars: Path) -> int:
    """Number of iterations that recorded an lm loss; 0 if the file is missing."""
    try:
        with scalars.open(encoding="utf-8") as lines:
            return sum(_LOSS_TAG in line for line in lines)
    except OSError:
        return 0


def read_run(record: RunRecord) -> "RunLog":
    """The run's recorded values, with the configuration and failure that its console tells.

    A run without a recorder of ours inside (a command of the user's) has its console alone: values as they were
    printed.

    Raises:
        ParseError: The run has recorded and printed nothing.
    """
    return with_console(read_curves(record), record)


def read_curves(record: RunRecord) -> "RunLog":
    """As `read_run`, but without what only the console tells: ten times as fast.

    Raises:
        ParseError: The run has recorded and printed nothing.
    """
    from lossbisect.parsers import read_log

    return read_log(record.scalars if record.scalars.exists() else record.console)


def with_console(curves: "RunLog", record: RunRecord) -> "RunLog":
    """A run's curves, with the configuration and failure that its console tells."""
    from lossbisect.errors import ParseError
    from lossbisect.parsers import read_log

    if not record.scalars.exists():
        return curves
    try:
        console = read_log(record.console)
    except ParseError:
        return curves  # a trainer may be told to print no rows; its recorded values stand on their own
    return dataclasses.replace(curves, config=console.config, failure=console.failure)
