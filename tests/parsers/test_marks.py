"""Checkpoints, memory, timers and step times of every age."""

from pathlib import Path

from lossbisect.parsers import RunLog, read_log

ROW = (
    " iteration {i:8d}/     100 | consumed samples: {i:12d} | elapsed time per iteration (ms): {ms:.1f} |"
    " learning rate: 1.000000E-03 | global batch size:     8 | lm loss: 2.500000E+00 | loss scale: 1.0 |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def read(folder: Path, *lines: str) -> RunLog:
    """The log of these lines and a row."""
    path = folder / "train.log"
    path.write_text("".join(f"{line}\n" for line in (*lines, ROW.format(i=1, ms=5.0))))
    return read_log(path)


def test_checkpoints(tmp_path: Path) -> None:
    """Begun, done and loaded are told apart in every release's words; a save that is only scheduled isn't done."""
    log = read(
        tmp_path,
        "saving checkpoint at iteration      50 to /ckpt",
        "[2026-01-01 00:00:00.123456] saving checkpoint at iteration      60 to /ckpt in torch_dist format",
        "  successfully saved checkpoint at iteration      50 to /ckpt",
        "  scheduled an async checkpoint save at iteration 70 to /ckpt",
        "[2026-01-01 00:00:00.1]   successfully saved checkpoint from iteration      60 to /ckpt [ t 1/2, p 1/1 ]",
        "  successfully loaded checkpoint from /ckpt [ t 1/2, p 1/1 ] at iteration 60",
        "  successfully loaded checkpoint from /ckpt at iteration 61",
    )
    assert [(mark.line_no, mark.kind, mark.iteration, mark.path) for mark in log.checkpoints] == [
        (1, "saving", 50, "/ckpt"),
        (2, "saving", 60, "/ckpt"),
        (3, "saved", 50, "/ckpt"),
        (5, "saved", 60, "/ckpt"),
        (6, "loaded", 60, "/ckpt"),
        (7, "loaded", 61, "/ckpt"),
    ]


def test_memory(tmp_path: Path) -> None:
    """Both trainers' reports, two ranks glued into one line, and the form of 2019."""
    log = read(
        tmp_path,
        "[Rank 9] (after 1 iterations) memory (MB) | allocated: 36891.15 | max allocated: 44566.31[Rank 8] "
        "(after 1 iterations) memory (MB) | allocated: 5.39990234375",
        "[Rank 0] (before save_checkpoint for iteration 50) memory (MB) | reserved: 7.00",
        "[Rank 0] (after 2 iterations) memory (GB) | mem-max-reserved-gigabytes: 216.89 | mem-alloc-retires: 0",
        " after 5 iterations memory (MB) | cached: 12.5",
    )
    assert [(report.rank, report.iteration, report.when, dict(report.values)) for report in log.memory] == [
        (9, 1, "after", {"allocated_mb": 36891.15, "max_allocated_mb": 44566.31}),
        (8, 1, "after", {"allocated_mb": 5.39990234375}),
        (0, 50, "before", {"reserved_mb": 7.0}),
        (0, 2, "after", {"mem_max_reserved_gigabytes": 216.89, "mem_alloc_retires": 0.0}),
        (None, 5, "after", {"cached_mb": 12.5}),
    ]


def test_timers(tmp_path: Path) -> None:
    """One line, ranges over ranks with their first one glued on, greatest only, and each rank's own."""
    log = read(
        tmp_path,
        "time (ms) | forward-compute: 377.02 | optimizer: 10.57",
        "[default0]:(min, max) time across ranks (ms):save-checkpoint ....: (1.50, 2.50)",
        "[default0]:    forward-backward ...............................: (223.06, 225.81)",
        "max time across ranks (ms):",
        "    optimizer ....: 3.25",
        "times across ranks (ms):",
        "  all-grads-sync:",
        "     rank  0: 1.00",
        "     rank  1: 4.00",
    )
    assert [(timer.line_no, timer.name, timer.min_ms, timer.max_ms) for timer in log.timings] == [
        (1, "forward-compute", 377.02, 377.02),
        (1, "optimizer", 10.57, 10.57),
        (2, "save-checkpoint", 1.5, 2.5),
        (3, "forward-backward", 223.06, 225.81),
        (5, "optimizer", None, 3.25),
        (10, "all-grads-sync", 1.0, 4.0),
    ]


def test_step_times_go_to_the_rows_that_they_fit(tmp_path: Path) -> None:
    """By value, before the row or after it; a throughput that no GPU reaches is left out."""
    path = tmp_path / "train.log"
    step = "Step Time : {:.2f}s GPU utilization: {:.1f}MODEL_TFLOP/s/GPU\n"
    path.write_text(
        step.format(14.26, 589.1)
        + ROW.format(i=1, ms=14255.8)
        + "\n"
        + ROW.format(i=2, ms=13000.0)
        + "\n"
        + step.format(13.0, 600.5)
        + ROW.format(i=3, ms=9000.0)
        + "\n"
        + step.format(8.0, 59892.0)
        + ROW.format(i=4, ms=8000.0)
        + "\n"
    )
    log = read_log(path)
    assert log.iterations["throughput_per_gpu_tflops"].to_list() == [589.1, 600.5, None, None]
    assert log.iterations["iteration"].to_list() == [1, 2, 3, 4]
