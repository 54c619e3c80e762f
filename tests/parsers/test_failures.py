"""What ended a run: named kinds, their order, and what ends nothing."""

from pathlib import Path

import pytest

from lossbisect.errors import UnknownFormatError
from lossbisect.parsers import RunLog, read_log
from lossbisect.parsers.failure_kinds import FAILURE_KINDS

START = "[before the start of training step] datetime: 2026-01-01 00:00:00 "
ROW = (
    " iteration {:8d}/     100 | consumed samples: 8 | lm loss: 2.500000E+00 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/workspace/Megatron-LM/pretrain_gpt.py", line 1, in <module>',
    "    raise {0}",
    "{0}: {1}",
)


def read(folder: Path, *lines: str) -> RunLog:
    """The log of these lines."""
    path = folder / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_log(path)


FAILURES = [
    ("cuda-oom", "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total"),
    ("cuda-oom", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"),
    ("cuda-oom", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    (
        "host-oom",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.",
    ),
    ("nan", "AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3, node: n1"),
    (
        "nan",
        "RuntimeError: Rank 0, node n1, device 0, iteration 7: Unexpected result nan (message='found NaN in local')",
    ),
    ("nan", "ERROR:megatron.core.rerun_state_machine:Unexpected result inf on rank 3 at iteration #3 invocation #2"),
    (
        "rerun-state-machine",
        "ERROR:x:Unexpected result 12.5 on rank 3 at iteration #3 invocation #2 (message='Spiky loss')",
    ),
    ("import-error", "ModuleNotFoundError: No module named 'megatron.core.parallel_state'"),
    ("import-error", "[default0]:ImportError: cannot import name 'x' from 'megatron.core'"),
    ("time-limit", "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***"),
    ("cuda-error", "RuntimeError: CUDA error: device-side assert triggered"),
    ("nccl", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, internal error"),
    (
        "nccl",
        "[rank1]:[E1006 04:18:02.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: W",
    ),
    ("gpu-hardware", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("cuda-driver", "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version"),
    ("disk-full", "OSError: [Errno 28] No space left on device"),
    ("file-system", "OSError: [Errno 116] Stale file handle"),
    ("node-failure", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE ***"),
    ("preemption", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***"),
    ("shared-memory", "ERROR: Unexpected bus error in worker, caused by insufficient shared memory (shm)."),
    (
        "port-in-use",
        "torch.distributed.DistNetworkError: port: 29500, name: EADDRINUSE, message: address already in use",
    ),
    ("rendezvous", "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection has failed."),
    ("signal", "Segmentation fault (core dumped)"),
    ("signal", "srun: error: n1: task 3: Killed"),
    ("signal", "  exitcode  : -9 (pid: 12)"),
    ("signal", "torch.distributed.elastic.multiprocessing.errors: Received 15 death signal, shutting down workers"),
]
LINES = dict(FAILURES)


@pytest.mark.parametrize(("kind", "line"), FAILURES)
def test_failure_has_its_kind(tmp_path: Path, kind: str, line: str) -> None:
    """Each kind is told by its line, which comes back without its prefix; the rows before it stay."""
    log = read(tmp_path, START, ROW.format(1), "noise", line)
    assert log.iterations.height == 1
    assert log.failure is not None
    assert (log.failure.kind, log.failure.line_no) == (kind, 4)
    assert log.failure.text in line


def test_every_kind_is_tested() -> None:
    """The table of kinds has no entry without an example here."""
    assert {kind.name for kind in FAILURE_KINDS} == {kind for kind, _ in FAILURES}


def test_cause_goes_before_consequence(tmp_path: Path) -> None:
    """One rank's memory error is the failure, though others reported a timeout first and a signal last."""
    log = read(tmp_path, START, ROW.format(1), LINES["nccl"], FAILURES[0][1], LINES["signal"])
    assert log.failure is not None
    assert (log.failure.kind, log.failure.line_no) == ("cuda-oom", 4)


def test_traceback_is_told_by_its_exception(tmp_path: Path) -> None:
    """An exception without a kind of its own is a traceback, told by its last line; the first one counts."""
    lines = [line.format("ValueError", "bad shape") for line in TRACEBACK]
    log = read(tmp_path, START, ROW.format(1), *lines, *(line.format("EOFError", "") for line in TRACEBACK))
    assert log.failure is not None
    assert (log.failure.kind, log.failure.line_no) == ("traceback", 6)
    assert log.failure.text == "ValueError: bad shape"


def test_failure_that_training_survived_ended_nothing(tmp_path: Path) -> None:
    """Rows after an error show that the run went on."""
    lines = [line.format("ValueError", "bad shape") for line in TRACEBACK]
    assert read(tmp_path, START, ROW.format(1), *lines, ROW.format(2)).failure is None
    assert read(tmp_path, *lines, START, ROW.format(1)).failure is None


def test_failure_of_an_earlier_attempt_is_a_note(tmp_path: Path) -> None:
    """What a restart got over is no failure of the log, but is told."""
    log = read(tmp_path, START, ROW.format(1), FAILURES[0][1], START, ROW.format(2))
    assert log.failure is None
    assert [(note.kind, note.line_no) for note in log.notes] == [("attempt-cuda-oom", 3)]
    log = read(tmp_path, ROW.format(1), ROW.format(2), FAILURES[0][1], ROW.format(2).replace("2.5", "2.6"))
    assert [(note.kind, note.line_no) for note in log.notes] == [("attempt-cuda-oom", 3), ("resume-overlap", 4)]


@pytest.mark.parametrize(
    "line",
    [
        "[exiting program at iteration 1] datetime: 2026-01-01 00:00:00 ",
        "[exiting program after 230 minutes] datetime: 2026-01-01 00:00:00 ",
        "[exiting program after receiving SIGTERM.] datetime: 2026-01-01 00:00:00 ",
        "[after training is done] datetime: 2026-01-01 00:00:00 ",
        "Exiting during evaluation, timelimit reached",
        "[rank0]:[W1006 04:18:02.1 ProcessGroupNCCL.cpp:1505] Warning: destroy_process_group() was not called",
        "[rank3]:[W1006 04:18:02.1 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl: Connection reset by peer",
        "n1:17:29 [0] NCCL INFO Call to connect returned Connection refused, retrying",
        "WARNING: something about NCCL_DEBUG and SIGTERM",
        "    raise torch.OutOfMemoryError",
    ],
)
def test_clean_end_is_no_failure(tmp_path: Path, line: str) -> None:
    """An exit that was asked for, and talk about signals, end a run well."""
    assert read(tmp_path, START, ROW.format(1), line).failure is None


def test_signal_after_a_clean_exit_is_no_failure(tmp_path: Path) -> None:
    """Launchers report the signal that the trainer obeyed; an error after it still counts."""
    done = "[exiting program after receiving SIGTERM.] datetime: 2026-01-01 00:00:00 "
    assert read(tmp_path, START, ROW.format(1), done, LINES["signal"]).failure is None
    log = read(tmp_path, START, ROW.format(1), done, FAILURES[0][1])
    assert log.failure is not None
    assert log.failure.kind == "cuda-oom"


def test_failed_start_without_a_row_is_a_log(tmp_path: Path) -> None:
    """A run that died while it started is Megatron's log: no row, but its configuration and its failure."""
    dump = ["------- arguments -------", "  lr ........ 0.1", "---- end of arguments ----"]
    log = read(tmp_path, *dump, *(line.format("ImportError", "no TE") for line in TRACEBACK))
    assert log.iterations.height == 0
    assert "lm_loss" in log.iterations.columns
    assert log.config == {"lr": 0.1}
    assert log.failure is not None
    assert log.failure.kind == "import-error"


def test_traceback_of_another_program_is_no_log(tmp_path: Path) -> None:
    """Without a sign of Megatron a traceback alone makes no log of ours."""
    with pytest.raises(UnknownFormatError):
        read(tmp_path, "Traceback (most recent call last):", '  File "x.py", line 1', "ValueError: bad")
