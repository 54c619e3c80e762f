"""Speed and memory: told, never deciding about a loss."""

import pytest

from lossbisect.compare import Repeats, Verdict, compare_logs
from lossbisect.compare.performance import performance
from lossbisect.compare.wording import change_text
from lossbisect.parsers.runlog import Memory, RunLog
from tests.compare.logs import make_log

LOSSES = [5.0 - 0.01 * row for row in range(40)]


def run(ms: float, *, first_ms: float = 9000.0) -> RunLog:
    """A run whose first iteration is slow, and one in the middle, too."""
    times = [first_ms, *[ms] * 39]
    times[20] = 10 * ms
    return make_log(
        LOSSES,
        elapsed_time_per_iteration_ms=times,
        throughput_per_gpu_tflops=[4e5 / value for value in times],
    )


def test_slower_run_is_told_and_the_loss_is_still_the_same() -> None:
    """By the median, so neither the first row nor a checkpoint's counts."""
    judgement = compare_logs(run(1000.0), run(1100.0))
    speed, throughput = judgement.comparison.performance
    assert judgement.verdict is Verdict.SAME
    assert speed.change_rel == pytest.approx(0.1)
    assert speed.is_worse
    assert change_text(speed) == "slower by 10.0 %"
    assert change_text(throughput) == "slower by 9.1 %"


def test_faster_run_is_never_worse() -> None:
    """One-sided."""
    speed, throughput = performance(run(1000.0), run(500.0), Repeats())
    assert not speed.is_worse
    assert not throughput.is_worse
    assert change_text(throughput) == "faster by 100.0 %"


def test_repeats_say_what_machines_vary_by() -> None:
    """3 % is news where repeats agree within 1 %, and none within the 5 % that nobody measured."""
    assert not performance(run(1000.0), run(1030.0), Repeats())[0].is_worse
    speed = performance(run(1000.0), run(1030.0), Repeats(baseline=(run(1010.0),)))[0]
    assert speed.noise_rel == pytest.approx(0.01)
    assert (speed.source, speed.is_worse) == ("1 repeat", True)


def test_peak_memory_is_compared() -> None:
    """The largest of all reports and ranks."""

    def with_memory(*peaks: float) -> RunLog:
        reports = tuple(
            Memory(line_no=row, rank=row, iteration=1, when="after", values={"max_allocated_mb": peak})
            for row, peak in enumerate(peaks)
        )
        log = make_log(LOSSES)
        return type(log)(
            **{name: getattr(log, name) for name in log.__dataclass_fields__ if name != "memory"}, memory=reports
        )

    (memory,) = performance(with_memory(900.0, 1000.0), with_memory(1200.0), Repeats())
    assert change_text(memory) == "more by 20.0 %"
    assert memory.is_worse


def test_speed_can_be_the_judge_and_only_for_the_worse() -> None:
    """A slower run diverges, a faster one doesn't, and 3 % is no news without repeats."""
    metric = "throughput_per_gpu_tflops"
    slow = compare_logs(run(1000.0), run(1100.0), metric=metric)
    assert slow.verdict is Verdict.DIVERGED
    assert "throughput per gpu tflops lies 9.1e-2 relative below the baseline" in slow.reason
    assert compare_logs(run(1000.0), run(800.0), metric=metric).verdict is Verdict.SAME
    assert compare_logs(run(1000.0), run(1030.0), metric=metric).verdict is Verdict.SAME


def test_log_without_times_has_no_performance() -> None:
    """Nothing is made up."""
    assert performance(make_log(LOSSES), make_log(LOSSES), Repeats()) == ()
