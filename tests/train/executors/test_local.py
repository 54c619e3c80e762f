"""This machine as an executor: slots, GPUs, cancelling, and nothing left over."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lossbisect.errors import RunCancelledError, TrainerError
from lossbisect.train.executors.gpus import gpu_variables, visible_gpus
from lossbisect.train.executors.local import LocalExecutor
from lossbisect.train.last_will import LastWill
from lossbisect.train.types import Lane, Outcome, RunRecord, RunSpec, Sources, TrainerName
from tests.bisect.support import commit, git

from .conftest import make_history, processes_of, spec_at

ROOT = Path(__file__).parents[3]


def _gone(out: Path, within_s: float = 30.0) -> bool:
    until_s = time.monotonic() + within_s
    while processes_of(out):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


def test_as_many_runs_at_once_as_there_are_slots(tmp_path: Path) -> None:
    """Two slots and three runs: two go on at once, the third waits for a slot, and all finish."""
    make_history(tmp_path / "mlm", [0.0], pause_s=0.1)
    executor, starts, ends = LocalExecutor(jobs=2), [], []
    lock = threading.Lock()

    def run(number: int) -> None:
        def on_line(line: str) -> None:
            if " iteration        1/" in line:
                with lock:
                    starts.append(time.monotonic())

        record = executor.run(spec_at(tmp_path / "mlm"), tmp_path / f"out-{number}", on_line=on_line)
        with lock:
            ends.append(time.monotonic())
        assert record.outcome is Outcome.FINISHED

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    executor.close()
    assert len(ends) == 3
    assert sorted(starts)[1] < min(ends)  # two at once
    assert sorted(starts)[2] > min(ends)  # the third one after a first end


def test_cancel_ends_what_runs_and_what_waits(tmp_path: Path) -> None:
    """From another thread: the run and the one that waits for its slot are cancelled, and no process stays."""
    make_history(tmp_path / "mlm", [0.0], pause_s=60.0)
    executor, spec, told = LocalExecutor(), spec_at(tmp_path / "mlm"), []

    def run(number: int) -> None:
        with pytest.raises(RunCancelledError):
            executor.run(spec, tmp_path / f"out-{number}")
        told.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    while not processes_of(tmp_path / "out-0") and not processes_of(tmp_path / "out-1"):
        time.sleep(0.05)
    executor.cancel()
    for thread in threads:
        thread.join(30)
    executor.close()
    assert sorted(told) == [0, 1]
    assert _gone(tmp_path / "out-0")


def test_gpus_are_split_between_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slot sees its share and no other's; the caller's own choice is what is split."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7,2")
    gpus = visible_gpus()
    assert [gpu_variables(gpus, slot=slot, slots=2) for slot in range(2)] == [
        {"CUDA_VISIBLE_DEVICES": "4,5"},
        {"CUDA_VISIBLE_DEVICES": "6,7"},
    ]
    assert gpu_variables((), slot=0, slots=2) == {}


@pytest.mark.parametrize(("gpus", "advice"), [("0,1", "--jobs 1"), ("0", "smaller recipe")])
def test_too_few_gpus_are_said_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: str, advice: str
) -> None:
    """Slots that are too many for the GPUs, or a recipe that needs more than there are, is an error with its remedy."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    executor = LocalExecutor(jobs=2)
    spec = RunSpec(
        sources=Sources(), recipe="vanilla-2gpu", trainer=TrainerName.MLM, lane=Lane.CUDA, python=Path(sys.executable)
    )
    with pytest.raises(TrainerError, match=advice):
        executor.run(spec, tmp_path / "out")
    executor.close()


def test_a_rank_that_is_killed_ends_the_run(tmp_path: Path) -> None:
    """``kill -9`` of one of two real ranks: a failed run within seconds, not a hang, and no rank is left."""
    make_history(tmp_path / "mlm", [0.0], pause_s=60.0)
    script = (
        "import sys, time\nimport megatron.core\n"
        "print(' iteration        1/      10 | lm loss: 1.000000E+01 |', flush=True)\ntime.sleep(600)\n"
    )
    commit(tmp_path / "mlm", "Sleep", {"pretrain_gpt.py": script})
    spec = RunSpec(
        sources=Sources(mcore=tmp_path / "mlm", mcore_commit=git(tmp_path / "mlm", "rev-parse", "HEAD")),
        recipe="tp2-cpu", trainer=TrainerName.MLM, lane=Lane.CUDA, python=Path(sys.executable), timeout_s=300.0,
    )  # fmt: skip
    executor, records = LocalExecutor(), list[RunRecord]()
    up = threading.Semaphore(0)

    def on_line(line: str) -> None:
        if " iteration " in line:
            up.release()

    thread = threading.Thread(target=lambda: records.append(executor.run(spec, tmp_path / "out", on_line=on_line)))
    thread.start()
    assert up.acquire(timeout=240)
    assert up.acquire(timeout=240)
    ranks = [pid for pid in processes_of(tmp_path / "out") if b"distributed" not in _words(pid)]
    assert len(ranks) == 2
    os.kill(ranks[0], signal.SIGKILL)
    thread.join(120)
    executor.close()
    assert not thread.is_alive()
    assert records[0].outcome is Outcome.FAILED
    assert _gone(tmp_path / "out")


def test_a_killed_launcher_leaves_no_rank(tmp_path: Path) -> None:
    """``kill -9`` of torch.distributed.run itself: its ranks, which have sessions of their own, don't stay either."""
    make_history(tmp_path / "mlm", [0.0])
    script = "import os, time\nprint(' iteration ' + os.environ['RANK'], flush=True)\ntime.sleep(600)\n"
    commit(tmp_path / "mlm", "Sleep", {"pretrain_gpt.py": script})
    spec = RunSpec(
        sources=Sources(mcore=tmp_path / "mlm"), recipe="tp2-cpu", trainer=TrainerName.MLM, lane=Lane.CUDA,
        python=Path(sys.executable), timeout_s=300.0,
    )  # fmt: skip
    executor, up = LocalExecutor(), threading.Semaphore(0)
    thread = threading.Thread(
        target=lambda: executor.run(
            spec, tmp_path / "out", on_line=lambda line: up.release() if " iteration " in line else None
        )
    )
    thread.start()
    assert up.acquire(timeout=240)
    assert up.acquire(timeout=240)
    launcher = next(pid for pid in processes_of(tmp_path / "out") if b"distributed" in _words(pid))
    os.kill(launcher, signal.SIGKILL)
    thread.join(120)
    executor.close()
    assert not thread.is_alive()
    assert _gone(tmp_path / "out")


def test_a_killed_driver_leaves_no_run(tmp_path: Path) -> None:
    """``kill -9`` of lossbisect: the trainer that it had started is ended without it."""
    make_history(tmp_path / "mlm", [0.0], pause_s=60.0)
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from tests.train.executors.conftest import spec_at\n"
        "from lossbisect.train.executors.local import LocalExecutor\n"
        "say = lambda line: print(line, flush=True)\n"
        "LocalExecutor().run(spec_at(Path(sys.argv[2])), Path(sys.argv[3]), on_line=say)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", script, str(ROOT), str(tmp_path / "mlm"), str(tmp_path / "out")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert driver.stdout is not None
    with driver.stdout:
        assert any(" iteration " in line for line in driver.stdout)
    assert len(processes_of(tmp_path / "out")) == 2  # driver and trainer
    driver.kill()
    driver.wait()
    assert _gone(tmp_path / "out")


def test_a_will_that_was_taken_back_is_not_executed(tmp_path: Path) -> None:
    """Only what was still held when the process died is executed, whatever was held before."""
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "from lossbisect.train.last_will import LastWill\n"
        "will = LastWill()\n"
        "with will.holding(f'touch {sys.argv[2]}/done-with'): pass\n"
        "held = [will.holding(f'touch {sys.argv[2]}/{number}') for number in range(12)]\n"
        "for each in held: each.__enter__()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(ROOT), str(tmp_path)], check=False)
    until_s = time.monotonic() + 10
    while len(list(tmp_path.iterdir())) < 12 and time.monotonic() < until_s:
        time.sleep(0.05)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(map(str, range(12)))
    will = LastWill()
    with will.holding(f"touch {tmp_path}/never"):
        pass
    will.close()
    assert not (tmp_path / "never").exists()


def _words(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
