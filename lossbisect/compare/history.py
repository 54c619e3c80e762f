"""Stored runs of the same recipe as the noise of a new one."""

from collections.abc import Sequence

from lossbisect.compare.config_diff import config_differences
from lossbisect.compare.types import Repeats
from lossbisect.parsers.runlog import RunLog

__all__ = ["MOST_STORED_RUNS", "stored_noise"]

MOST_STORED_RUNS = 8
"""Runs that are used at most, the newest ones: older ones come from other machines and images."""


def stored_noise(baseline: RunLog, history: Sequence[RunLog]) -> Repeats:
    """What may count as a repeat of the baseline, for `compare_logs`; empty where no stored run does.

    A stored run counts if no setting that moves the loss is known to differ, if it didn't fail, and if it reaches the
    baseline's last iteration. Whoever keeps the store hands over runs of one recipe, trainer and kind of device only.

    Args:
        baseline: The run to trust.
        history: Runs of the same recipe, the oldest first; the baseline itself may be among them.
    """
    last = baseline.iterations["iteration"].max()
    alike = [
        run
        for run in history
        if run is not baseline and run.path != baseline.path and run.failure is None
        if run.iterations.height and run.iterations["iteration"].max() >= last  # type: ignore[operator]
        if not config_differences(baseline.config, run.config)
    ]
    return Repeats(baseline=tuple(alike[-MOST_STORED_RUNS:]), noun="stored run")
