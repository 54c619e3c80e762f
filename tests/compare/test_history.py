"""Stored runs of the same recipe as the noise."""

from pathlib import Path

from lossbisect.compare import Verdict, compare_logs, stored_noise
from lossbisect.compare.history import MOST_STORED_RUNS
from lossbisect.parsers.runlog import ConfigValue, Failure, RunLog
from tests.compare.logs import FLOAT32, make_log

ROWS = 30


def run(name: str, *, rows: int = ROWS, by: float = 0.0, **config: ConfigValue) -> RunLog:
    """A run with a little noise of its own."""
    losses = [(5.0 - 0.01 * row) * (1 + by * (-1) ** row) for row in range(rows)]
    return make_log(losses, path=name, config=FLOAT32 | config)


def names(history: list[RunLog]) -> list[Path]:
    """Which of them are used."""
    return [log.path for log in stored_noise(run("base"), history).baseline]


def test_only_runs_of_the_same_settings_that_went_as_far_count() -> None:
    """Neither the baseline itself, nor a failed or shorter one, nor one with another learning rate."""
    failed = make_log([5.0] * ROWS, path="failed", failure=Failure(kind="nccl", line_no=1, text="time-out"))
    history = [run("base"), run("short", rows=20), failed, run("other", adam_eps=1e-5), run("longer", rows=40)]
    base = run("base", adam_eps=1e-8)
    assert [log.path.name for log in stored_noise(base, history).baseline] == ["longer"]


def test_newest_runs_are_taken() -> None:
    """Old ones come from other machines."""
    history = [run(f"run-{number}") for number in range(12)]
    assert names(history) == [Path(f"run-{number}") for number in range(12 - MOST_STORED_RUNS, 12)]


def test_source_is_named() -> None:
    """The output says that the noise comes from stored runs."""
    repeats = stored_noise(run("base"), [run("old-1", by=1e-6), run("old-2", by=-1e-6)])
    judgement = compare_logs(run("base"), run("new", by=5e-7), repeats=repeats)
    assert judgement.verdict is Verdict.SAME
    assert judgement.comparison.noise.source == "2 stored runs"


def test_no_history_is_no_noise() -> None:
    """Then the number format has to do."""
    repeats = stored_noise(run("base"), [])
    assert repeats.count == 0
    assert compare_logs(run("base"), run("new"), repeats=repeats).comparison.noise.source == "float32 rounding"
