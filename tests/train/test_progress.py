"""How far a run is, and what runs will cost."""

import pytest

from lossbisect.train.cost import RunsCost, cost_text, duration_text
from lossbisect.train.executors import ExecutorName
from lossbisect.train.progress import RunProgress


def test_progress_has_iteration_loss_and_time_left() -> None:
    """From the second row on the time left is known; the first row's time is start-up and doesn't count."""
    times = iter([100.0, 102.0, 110.0])
    progress = RunProgress(lambda: next(times))
    assert progress.read("> building the model ...") is None
    row = "[rank0]: iteration {:8d}/      10 | consumed samples: 8 | lm loss: {} | grad norm: 1.0 |"
    assert progress.read(row.format(1, "1.038E+01")) == "iteration 1/10, lm loss 10.38"
    assert progress.read(row.format(2, "1.0E+01")) == "iteration 2/10, lm loss 10, about 16 s left"
    assert progress.read(row.format(10, "nan")) == "iteration 10/10, lm loss nan"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599.0, "59 min 59 s"), (11400.0, "3 h 10 min")]
)
def test_times_are_written_with_two_parts(seconds: float, text: str) -> None:
    """Rounded first, so that no minute has sixty seconds."""
    assert duration_text(seconds) == text


def _cost(**more: object) -> RunsCost:
    values: dict[str, object] = {
        "runs": 9, "jobs": 2, "gpus": 2, "where": ExecutorName.LOCAL, "timeout_s": 1800.0
    } | more  # fmt: skip
    return RunsCost(**values)  # type: ignore[arg-type]


def test_the_cost_comes_from_earlier_runs() -> None:
    """The median of earlier runs, rounds of jobs, and GPUs held; without any the time limit is the most it can be."""
    known = _cost(earlier_s=(100.0, 120.0, 900.0))
    assert (known.each_s, known.total_s, known.hours) == (120.0, 600.0, 0.6)
    unknown = _cost()
    assert (unknown.total_s, unknown.hours) == (None, 9.0)
    assert "unknown" in cost_text(unknown)
    assert "at most 9" in cost_text(unknown)
    assert "about 10 min 0 s (2 min 0 s for each run, from 3 earlier runs)" in cost_text(known)


@pytest.mark.parametrize(
    ("gpus", "where", "hours", "unit"),
    [
        (0, ExecutorName.LOCAL, 0.0, "node hours"),
        (0, ExecutorName.SLURM, 4.5, "node hours"),
        (1, ExecutorName.SLURM, 4.5, "GPU hours"),
        (2, ExecutorName.COMMAND, 9.0, "GPU hours"),
    ],
)
def test_what_is_held(gpus: int, where: ExecutorName, hours: float, unit: str) -> None:
    """A run on this machine's CPU costs nothing that has to be asked for; a node of a cluster does."""
    cost = _cost(gpus=gpus, where=where)
    assert (cost.hours, cost.unit) == (hours, unit)
