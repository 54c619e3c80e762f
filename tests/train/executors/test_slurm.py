"""Jobs on a real Slurm of one node: cancelled, lost, refused, waiting. Nothing hangs, and nothing is called bad."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.cause import Cause
from lossbisect.errors import RunCancelledError, TrainerError
from lossbisect.train.executors import Executor, ExecutorName, ExecutorOptions, open_executor
from lossbisect.train.executors.retry import RetryingExecutor
from lossbisect.train.executors.slurm import SlurmExecutor
from lossbisect.train.types import Outcome, RunRecord
from tests.slurm.cluster import Cluster

from .conftest import make_history, processes_of, spec_at

NO_GPU = {"gpus-per-node": "0"}
SLOW_S = 120.0
"""A run that is to be interrupted would take ten times as long."""


def _options(**more: object) -> ExecutorOptions:
    return ExecutorOptions(name=ExecutorName.SLURM, sbatch_options=NO_GPU, **more)  # type: ignore[arg-type]


class _Running:
    """A run in a thread of its own."""

    def __init__(self, executor: Executor, run: Callable[[Executor, Callable[[str], None]], RunRecord]) -> None:
        self.lines: list[str] = []
        self.record: RunRecord | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(executor, run))
        self._thread.start()

    def _run(self, executor: Executor, run: Callable[[Executor, Callable[[str], None]], RunRecord]) -> None:
        try:
            self.record = run(executor, self.lines.append)
        except RunCancelledError as error:
            self.error = error

    def wait_for(self, text: str, number: int = 1) -> None:
        until_s = time.monotonic() + 120
        while sum(text in line for line in self.lines) < number:
            assert time.monotonic() < until_s, self.lines
            time.sleep(0.05)

    def join(self) -> None:
        self._thread.join(120)
        assert not self._thread.is_alive(), f"the run hangs after {self.lines}"


def _tree(folder: Path, *, pause_s: float = SLOW_S) -> Path:
    make_history(folder / "mlm", [0.0], pause_s=pause_s)
    return folder / "mlm"


def _jobs(cluster: Cluster) -> str:
    return cluster.ask("squeue", "--noheader", "--format=%i %T").strip()


def _expect_no_jobs(cluster: Cluster) -> None:
    until_s = time.monotonic() + 60
    while _jobs(cluster):
        assert time.monotonic() < until_s, _jobs(cluster)
        time.sleep(0.2)


def test_a_cancelled_run_leaves_no_job(slurm: Cluster, tmp_path: Path) -> None:
    """Ctrl-C: the run says that it was cancelled, nothing else, and its job and process are gone."""
    tree, executor = _tree(tmp_path), SlurmExecutor(_options())
    running = _Running(executor, lambda it, say: it.run(spec_at(tree), tmp_path / "out", on_line=say))
    running.wait_for("iteration        1/")
    executor.cancel()
    running.join()
    executor.close()
    assert isinstance(running.error, RunCancelledError)
    _expect_no_jobs(slurm)
    assert processes_of(tmp_path / "out") == []


def test_a_run_that_takes_too_long_is_cancelled(slurm: Cluster, tmp_path: Path) -> None:
    """Time counts from the job's start; after it the job is cancelled, and the run has timed out."""
    executor = open_executor(_options())
    record = executor.run(spec_at(_tree(tmp_path), timeout_s=3.0), tmp_path / "out")
    executor.close()
    assert (record.outcome, record.cause) == (Outcome.TIMED_OUT, Cause.UNKNOWN)
    assert "3 s" in record.reason
    _expect_no_jobs(slurm)


def test_a_killed_rank_is_a_failed_run(slurm: Cluster, tmp_path: Path) -> None:
    """``kill -9`` of the training process on its node: a failed run that names the signal, and the job is over."""
    tree, executor = _tree(tmp_path), open_executor(_options())
    running = _Running(executor, lambda it, say: it.run(spec_at(tree), tmp_path / "out", on_line=say))
    running.wait_for("iteration        1/")
    for pid in processes_of(tmp_path / "out"):
        if b"launch.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    running.join()
    executor.close()
    assert running.record is not None
    assert (running.record.outcome, running.record.exit_code) == (Outcome.FAILED, -9)
    assert "SIGKILL" in running.record.reason
    _expect_no_jobs(slurm)


def test_a_run_outlives_slurmd(slurm: Cluster, tmp_path: Path) -> None:
    """``kill -9`` of slurmd alone: the job goes on beside it, and its run finishes."""
    tree, executor = _tree(tmp_path, pause_s=0.3), open_executor(_options())
    running = _Running(executor, lambda it, say: it.run(spec_at(tree), tmp_path / "out", on_line=say))
    running.wait_for("iteration        1/")
    slurm.kill_slurmd()
    running.join()
    slurm.start_node()
    executor.close()
    assert running.record is not None
    assert running.record.outcome is Outcome.FINISHED, running.record.reason


@pytest.mark.parametrize("is_told", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_lost_node_is_tried_again(slurm: Cluster, tmp_path: Path, *, is_told: bool) -> None:
    """A node that dies with its jobs is the infrastructure's failure by Slurm's own word: the run is made again."""
    tree = _tree(tmp_path, pause_s=1.0)
    executor = RetryingExecutor(SlurmExecutor(_options()), retries=1, wait_s=0.1)
    running = _Running(executor, lambda it, say: it.run(spec_at(tree), tmp_path / "out", on_line=say))
    running.wait_for("iteration        1/")
    slurm.kill_node()
    if is_told:  # else the controller needs most of a minute to notice
        slurm.give_up_node()
    running.wait_for("not the commit's failure")
    slurm.start_node()
    running.join()
    executor.close()
    assert any("NODE_FAIL" in line for line in running.lines)
    assert running.record is not None
    assert running.record.outcome is Outcome.FINISHED, running.record.reason
    assert running.record.out == tmp_path / "out.attempt-2"


def test_a_job_that_never_starts_is_given_up(slurm: Cluster, tmp_path: Path) -> None:
    """A queue without end ends: the reason is Slurm's, the job is cancelled, and nothing is tried again."""
    node = slurm.ask("sinfo", "--noheader", "--format=%n").strip()
    slurm.ask("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    executor = open_executor(_options(queue_timeout_s=3.0))
    record = executor.run(spec_at(_tree(tmp_path)), tmp_path / "out")
    executor.close()
    slurm.ask("scontrol", "update", f"nodename={node}", "state=resume")
    assert (record.outcome, record.cause) == (Outcome.FAILED, Cause.UNKNOWN)
    assert "didn't start within 3 s" in record.reason
    assert "DRAIN" in record.reason.upper()
    _expect_no_jobs(slurm)


@pytest.mark.usefixtures("slurm")
@pytest.mark.parametrize("is_template", [False, True])
def test_what_slurm_refuses_is_one_line(tmp_path: Path, *, is_template: bool) -> None:
    """A wrong partition is an error of the set-up with Slurm's own words, no verdict on a commit."""
    template = tmp_path / "site.sbatch"
    template.write_text("#!/bin/bash\n{command}\n")
    options = ExecutorOptions(
        name=ExecutorName.SLURM, sbatch_options={"partition": "nowhere", **NO_GPU},
        sbatch_template=template if is_template else None,
    )  # fmt: skip
    executor = open_executor(options)
    with pytest.raises(TrainerError, match="partition") as error:
        executor.run(spec_at(_tree(tmp_path)), tmp_path / "out")
    executor.close()
    assert "\n" not in str(error.value)


def test_a_template_that_fails_says_why(slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that ends before the trainer began is a failed run; the last word of its log is the reason."""
    monkeypatch.setattr("lossbisect.train.executors.slurm._SETTLE_S", 1.0)
    template = tmp_path / "site.sbatch"
    template.write_text("#!/bin/bash\necho 'error: no such container image: megatron.sqsh' >&2\nexit 7\n: {command}\n")
    executor = SlurmExecutor(ExecutorOptions(name=ExecutorName.SLURM, sbatch_template=template))
    slow = _Running(executor, lambda it, say: it.run(spec_at(_tree(tmp_path)), tmp_path / "out", on_line=say))
    slow.join()
    executor.close()
    assert slow.record is not None
    assert slow.record.outcome is Outcome.FAILED
    assert "no such container image: megatron.sqsh" in slow.record.reason
    assert _jobs(slurm) == ""


def test_a_killed_driver_cancels_its_job_and_goes_on(slurm: Cluster, tmp_path: Path) -> None:
    """``kill -9`` of lossbisect itself: its job doesn't stay in the queue, and --resume finds the commit."""
    shas = make_history(tmp_path / "mlm", [0.0, 0.5], pause_s=0.2)
    command = [sys.executable, "-m", "lossbisect", "bisect", "--work-dir", str(tmp_path / "work")]
    start = [
        "--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", shas[1], "--lane", "cuda", "--recipe",
        "vanilla-cpu", "--executor", "slurm", "--sbatch-option", "gpus-per-node=0", "--yes",
    ]  # fmt: skip
    environment = {**os.environ, **slurm.variables, "LOSSBISECT_CACHE_DIR": str(tmp_path / "cache")}
    driver = subprocess.Popen([*command, *start], env=environment, stderr=subprocess.DEVNULL)
    until_s = time.monotonic() + 120
    while "RUNNING" not in _jobs(slurm):
        assert time.monotonic() < until_s
        time.sleep(0.1)
    driver.kill()
    driver.wait()
    _expect_no_jobs(slurm)
    done = subprocess.run(
        [*command, "--resume"], env=environment, capture_output=True, text=True, check=False, timeout=300,
        cwd=tmp_path / "mlm",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"FIRST BAD COMMIT: {shas[1][:10]}")
