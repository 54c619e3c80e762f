"""``lossbisect watch``."""

import os
import shlex
import subprocess
import time
from pathlib import Path

import click

from lossbisect.cli.options import LOG_PATH, repeat_option, tolerance_option
from lossbisect.compare.watching import Watch
from lossbisect.errors import LossbisectError, ParseError
from lossbisect.parsers.runlog import RunLog

__all__ = ["command"]

_END_MARKS = (b"[after training is done]", b"[exiting program")
_TAIL_BYTES = 65_536


@click.command(
    epilog="Exit codes: 0 the end was reached without a sure divergence, 1 diverged, 3 the run failed or never wrote a "
    "row, 2 wrong usage or a failure of lossbisect itself.",
)
@click.argument("run", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--baseline", required=True, type=LOG_PATH, metavar="LOG", help="Log to trust.")
@repeat_option
@click.option("--metric", default="lm_loss", show_default=True, metavar="COLUMN", help="Column to judge by.")
@tolerance_option
@click.option(
    "--until-iteration",
    type=click.IntRange(min=1),
    metavar="N",
    help="Iteration after which to stop.  [default: the baseline's last]",
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(min=0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop when the log hasn't changed for so long.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks; more looks cost no false alarms.",
)
@click.option(
    "--on-divergence",
    metavar="COMMAND",
    help="Run this at the first sure divergence, without a shell; $LOSSBISECT_REASON says what was found.",
)
def command(
    run: Path,
    baseline: Path,
    repeats: tuple[Path, ...],
    metric: str,
    tolerance: float | None,
    until_iteration: int | None,
    idle_timeout: float,
    interval: float,
    on_divergence: str | None,
) -> int:
    """Follow the growing log RUN and stop at the first sure divergence from a baseline.

    Example: lossbisect watch train.log --baseline good.log --on-divergence "scancel 4711"
    """
    from lossbisect.parsers import read_log

    if tolerance is not None and repeats:
        raise click.UsageError("Repeats measure the noise, and --tolerance states it: give one of the two.")
    trusted = read_log(baseline)
    watch = Watch(trusted, metric=metric, tolerance=tolerance, repeats=tuple(read_log(path) for path in repeats))
    last = until_iteration or _last_iteration(trusted)
    changed, stamp, seen = time.monotonic(), None, 0
    log: RunLog | None = None
    while True:
        now = _stamp(run)
        if now != stamp:
            stamp, changed = now, time.monotonic()
            log = _read(run) or log
            if log is not None:
                news = watch.update(log)
                seen = max(seen, news.last)
                for line in news.lines:
                    click.echo(line)
                if news.alarm is not None:
                    return _diverged(news.alarm, on_divergence)
        if seen >= last or _has_ended(run):
            return _ended(log, seen, "the run has ended" if seen < last else f"iteration {seen} is reached")
        if time.monotonic() - changed >= idle_timeout:
            return _ended(log, seen, f"the log hasn't changed for {idle_timeout:g} s")
        time.sleep(interval)


def _diverged(reason: str, on_divergence: str | None) -> int:
    click.echo(f"DIVERGED: {reason}.")
    if on_divergence:
        try:
            subprocess.run(shlex.split(on_divergence), check=False, env=os.environ | {"LOSSBISECT_REASON": reason})
        except OSError as error:
            raise LossbisectError(f"--on-divergence: '{on_divergence}' could not be run ({error}).") from error
    return 1


def _ended(log: RunLog | None, seen: int, why: str) -> int:
    if log is not None and log.failure is not None:
        click.echo(f"UNDECIDED: no sure divergence, but the run failed ({log.failure.kind}: {log.failure.text}).")
        return 3
    if not seen:
        click.echo(f"UNDECIDED: {why}, and no row could be compared.")
        return 3
    click.echo(f"No sure divergence up to iteration {seen}: {why}.")
    return 0


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a log grows, is truncated or replaced; None while it isn't there."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _read(path: Path) -> RunLog | None:
    """The log as it is now; None while it holds nothing that can be read."""
    from lossbisect.parsers import read_log

    try:
        return read_log(path)
    except ParseError:
        return None


def _has_ended(path: Path) -> bool:
    """Whether the run's own end mark is the newest in the log's tail."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            tail = file.read()
    except FileNotFoundError:
        return False
    end = max(tail.rfind(mark) for mark in _END_MARKS)
    return end > tail.rfind(b" iteration ")


def _last_iteration(log: RunLog) -> int:
    last = log.iterations["iteration"].max()
    return last if isinstance(last, int) else 0
