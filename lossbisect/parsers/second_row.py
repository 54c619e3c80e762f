"""The second row of a Megatron-LM process, which is a mean of two iterations in core_v0.16.0 and later.

Those versions print the first iteration of every process start and don't reset the accumulators after it. With log
interval 1, the second row's losses, elapsed time, throughput and counters then cover the first two iterations. A later
version mends it without another trace in the log, so the time stamps decide: a row's own clock says how long the
second iteration really took.
"""

from datetime import datetime
from typing import NamedTuple

__all__ = ["RowTime", "decide", "mend"]


class RowTime(NamedTuple):
    """What a row says about time.

    Attributes:
        iteration: Number of the iteration.
        stamp: The row's own clock, or ``""``.
        elapsed_ms: Printed time per iteration, or None.
    """

    iteration: int
    stamp: str
    elapsed_ms: float | None


class Decision(NamedTuple):
    """Whether a second row is a mean that includes the first.

    Attributes:
        is_mean: None where it could not be told.
        reason: What told it, as the end of a sentence.
    """

    is_mean: bool | None
    reason: str


_FIRST_WITH_DEFECT, _LAST_WITH_DEFECT = (0, 16), (0, 19)
_ROUNDING_MS = 0.15  # elapsed times are printed to 0.1 ms; twice one, less the other
_CLEAR = 0.25  # the winning explanation must be four times as close as the two are apart


def decide(first: RowTime, second: RowTime, *, version: str | None, is_process_start: bool) -> Decision:
    """Whether the second row of an attempt is a mean from the first row's iterations on.

    Between the two stamps the trainer ran ``n = second - first`` iterations. If the row covers only these, ``n`` times
    its elapsed time is the difference of the stamps. If it covers the first one too, ``(n + 1)`` times its elapsed time
    less the first row's is. Which of the two fits is the evidence; work between the rows (an evaluation, a save) only
    lengthens the difference of the stamps.

    Args:
        first: The attempt's first row.
        second: Its second row.
        version: Megatron-Core's version as printed, if it was.
        is_process_start: Whether the first row is known to be the first that the process printed.
    """
    release = _release(version)
    if release and release < _FIRST_WITH_DEFECT:
        return Decision(is_mean=False, reason=f"Megatron-Core {version} resets after the first row")
    if "." not in second.stamp:
        return Decision(is_mean=False, reason="time stamps without microseconds come from versions before 0.16")
    by_clock = _by_clock(first, second)
    by_version = True if is_process_start and release and _FIRST_WITH_DEFECT <= release <= _LAST_WITH_DEFECT else None
    if by_clock is not None and by_version in {None, by_clock}:
        return Decision(is_mean=by_clock, reason="the time stamps say so")
    if by_clock is None and by_version is not None:
        return Decision(is_mean=True, reason=f"Megatron-Core {version} is known to do so")
    return Decision(is_mean=None, reason="the time stamps and the version don't tell")


def _by_clock(first: RowTime, second: RowTime) -> bool | None:
    if first.elapsed_ms is None or second.elapsed_ms is None:
        return None
    try:
        between = datetime.fromisoformat(second.stamp) - datetime.fromisoformat(first.stamp)
    except ValueError:
        return None
    n = second.iteration - first.iteration
    between_ms = between.total_seconds() * 1e3
    if_own = n * second.elapsed_ms
    if_mean = (n + 1) * second.elapsed_ms - first.elapsed_ms
    apart = abs(if_mean - if_own)
    rounding = (n + 1) * _ROUNDING_MS
    if apart < 4 * rounding:
        return None
    # Stamps can't be closer together than the iterations between them took.
    could_be_own = between_ms > if_own - rounding
    could_be_mean = between_ms > if_mean - rounding
    if could_be_own != could_be_mean and max(between_ms, 0.0) >= min(if_own, if_mean) - rounding:
        is_near = abs(between_ms - (if_mean if could_be_mean else if_own)) <= _CLEAR * apart
        return could_be_mean if is_near else None
    if could_be_mean and could_be_own:
        longer_is_mean = if_mean > if_own
        gap = between_ms - max(if_mean, if_own)
        return longer_is_mean if gap <= _CLEAR * apart else None
    return None


def mend(first: dict[str, float | None], second: dict[str, float | None], losses: list[str]) -> dict[str, float | None]:
    """The second row's own values, from two rows of which the second is the mean of both.

    Args:
        first: The first row's values, by column.
        second: The second row's values.
        losses: Loss columns.

    Returns:
        The columns to replace. A loss that the second iteration did not print alone (it was skipped) is None.
    """
    own: dict[str, float | None] = {}
    skipped_first = first.get("number_of_skipped_iterations") or 0.0
    for name in ("number_of_skipped_iterations", "number_of_nan_iterations"):
        value = second.get(name)
        if value is not None:
            own[name] = max(0.0, value - (first.get(name) or 0.0))
    skipped_second = own.get("number_of_skipped_iterations") or 0.0
    for name in losses:
        before, value = first.get(name), second.get(name)
        if value is None or skipped_first:
            continue  # not logged, or the second iteration is the only one in the mean
        if skipped_second:
            own[name] = None
        elif before is not None:
            own[name] = 2.0 * value - before
    elapsed, elapsed_first = second.get("elapsed_time_per_iteration_ms"), first.get("elapsed_time_per_iteration_ms")
    if elapsed is not None and elapsed_first is not None and 2.0 * elapsed > elapsed_first:
        own["elapsed_time_per_iteration_ms"] = 2.0 * elapsed - elapsed_first
        throughput = second.get("throughput_per_gpu_tflops")
        if throughput is not None:
            own["throughput_per_gpu_tflops"] = throughput * elapsed / (2.0 * elapsed - elapsed_first)
    return own


def _release(version: str | None) -> tuple[int, int] | None:
    """Major and minor number of a printed version such as ``0.20.0+2a75ac12c5``."""
    if version is None:
        return None
    numbers = version.removeprefix("core_v").removeprefix("v").split(".")[:2]
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else None
