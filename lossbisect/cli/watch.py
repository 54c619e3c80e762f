"""``lossbisect watch``."""

import os
import shlex
import subprocess
import time
from pathlib import Path

import click

from lossbisect.cli.follow import GrowingLog
from lossbisect.cli.log_options import LOG_PATH, repeat_option, tolerance_option
from lossbisect.cli.number import Number
from lossbisect.compare.watching import Watch
from lossbisect.errors import LossbisectError
from lossbisect.parsers.runlog import RunLog

__all__ = ["command"]


@click.command(
    epilog="Exit codes: 0 the end was reached without a sure divergence, 1 diverged, 3 the run failed, stalled or "
    "never wrote a row, 2 wrong usage or a failure of lossbisect itself.",
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
    type=Number(min=0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop when the log hasn't changed for so long.",
)
@click.option(
    "--interval",
    type=Number(min=0.01),
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
    growing = GrowingLog(run)
    changed, seen = time.monotonic(), 0
    while True:
        if growing.look():
            changed = time.monotonic()
            if growing.log is not None:
                news = watch.update(growing.log)
                seen = max(seen, news.last)
                for line in news.lines:
                    click.echo(line)
                if news.alarm is not None:
                    return _diverged(news.alarm, on_divergence)
        if seen >= last:
            return _reached(growing.log, seen)
        if growing.has_ended:
            return _ended(growing.log, seen, "the run has ended")
        if time.monotonic() - changed >= idle_timeout:
            return _stalled(growing.log, seen, last, idle_timeout)
        time.sleep(interval)


def _diverged(reason: str, on_divergence: str | None) -> int:
    click.echo(f"DIVERGED: {reason}.")
    if on_divergence:
        try:
            subprocess.run(shlex.split(on_divergence), check=False, env=os.environ | {"LOSSBISECT_REASON": reason})
        except OSError as error:
            raise LossbisectError(f"--on-divergence: '{on_divergence}' could not be run ({error}).") from error
    return 1


def _reached(log: RunLog | None, seen: int) -> int:
    """All rows that were asked for are there; what failed after them, such as a last save, changes none of them."""
    failed = "" if log is None or log.failure is None else f" (then it failed: {log.failure.kind}: {log.failure.text})"
    click.echo(f"No sure divergence up to iteration {seen}: iteration {seen} is reached{failed}.")
    return 0


def _ended(log: RunLog | None, seen: int, why: str) -> int:
    if log is not None and log.failure is not None:
        click.echo(f"UNDECIDED: no sure divergence, but the run failed ({log.failure.kind}: {log.failure.text}).")
        return 3
    if not seen:
        click.echo(f"UNDECIDED: {why}, and no row could be compared.")
        return 3
    click.echo(f"No sure divergence up to iteration {seen}: {why}.")
    return 0


def _stalled(log: RunLog | None, seen: int, last: int, idle_timeout: float) -> int:
    """The log hasn't changed for long: the run hangs, was killed, or says nowhere that it ended."""
    why = f"the log hasn't changed for {idle_timeout:g} s"
    if not seen or (log is not None and log.failure is not None):
        return _ended(log, seen, why)
    click.echo(f"UNDECIDED: no sure divergence up to iteration {seen} of {last}, but {why}.")
    return 3


def _last_iteration(log: RunLog) -> int:
    last = log.iterations["iteration"].max()
    return last if isinstance(last, int) else 0
