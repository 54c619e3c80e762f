"""One figure of a run: its time per iteration, or its peak of memory. Pure."""

from statistics import median

from lossbisect.bisect.options import Regress
from lossbisect.compare.align import PERFORMANCE
from lossbisect.parsers.runlog import RunLog

__all__ = ["FIGURES", "figure_name", "figure_of", "figure_text", "no_figure"]

FIGURES = {Regress.THROUGHPUT: "time per iteration", Regress.MEMORY: "peak memory"}
"""What is judged by one figure a run, and what it is called."""
_TIME = "elapsed_time_per_iteration_ms"
_PEAKS = {"mem_max_allocated_gigabytes": 1024.0, "max_allocated_mb": 1.0}
"""What logs call the peak, and its unit in MB."""
_WARM_UP = 0.3
_LEAST_WARM_UP = 2
_LEAST = 3

assert _TIME in PERFORMANCE


def figure_name(regress: Regress) -> str:
    """What the figure is called."""
    return FIGURES[regress]


def figure_of(log: RunLog, regress: Regress) -> float | None:
    """The run's figure; None where its log tells none, or too few iterations to leave the warm-up out.

    The time is the median over the iterations, ms, without the first three tenths and at least two: there kernels are
    compiled and caches filled. Memory is the highest peak of any rank, MB.
    """
    if regress is Regress.MEMORY:
        reports = [report.values for report in log.memory]
        peaks = [row[name] * unit for row in reports for name, unit in _PEAKS.items() if name in row]
        return max(peaks, default=0.0) or None  # without a GPU logs tell a peak of 0
    if _TIME not in log.iterations.columns:
        return None
    times = [float(value) for value in log.iterations[_TIME].drop_nulls().drop_nans()]
    kept = times[max(_LEAST_WARM_UP, round(_WARM_UP * len(times))) :]
    return median(kept) if len(kept) >= _LEAST else None


def figure_text(value: float, regress: Regress) -> str:
    """A figure with its unit."""
    return f"{value:,.4g} ms" if regress is Regress.THROUGHPUT else f"{value:,.1f} MB"


def no_figure(regress: Regress) -> str:
    """Why a run without its figure can't be judged, a clause."""
    if regress is Regress.MEMORY:
        return "its log tells no peak of memory"
    return f"its log tells no time for {_LEAST} iterations after the warm-up of {_LEAST_WARM_UP}"
