"""``lossbisect watch``: exit code and output together."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.cli import main
from lossbisect.cli.follow import GrowingLog

type Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``lossbisect watch`` and return its exit code and stdout."""

    def _run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["watch", "--interval", "0.02", *arguments])
        code = stopped.value.code
        assert isinstance(code, int)
        return code, capsys.readouterr().out

    return _run


def rows(losses: list[float], first: int = 1) -> str:
    """Rows of a console log."""
    return "".join(
        f" [2026-08-22 10:00:00] iteration {iteration:8d}/     100 | consumed samples: {iteration * 8:12d} "
        f"| elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:     8 "
        f"| lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 "
        f"| number of nan iterations:   0 |\n"
        for iteration, loss in enumerate(losses, start=first)
    )


BASE = [5.0 - 0.05 * row for row in range(12)]


@pytest.fixture
def baseline(tmp_path: Path) -> str:
    """A log of twelve iterations."""
    path = tmp_path / "base.log"
    path.write_text(rows(BASE), encoding="utf-8")
    return str(path)


def test_run_that_reaches_the_end_exits_0(run: Run, baseline: str, tmp_path: Path) -> None:
    """One line a row, and the end."""
    log = tmp_path / "run.log"
    log.write_text(rows(BASE), encoding="utf-8")
    code, out = run(str(log), "--baseline", baseline)
    assert code == 0
    assert out.count(" vs ") == 12
    assert out.endswith("No sure divergence up to iteration 12: iteration 12 is reached.\n")


def test_growing_file_is_followed_and_stopped_at_the_divergence(run: Run, baseline: str, tmp_path: Path) -> None:
    """It starts before the file is there; the command is run once."""
    log, mark = tmp_path / "run.log", tmp_path / "mark"
    losses = [*BASE[:6], *(value + 0.3 for value in BASE[6:])]

    def write() -> None:
        for iteration, loss in enumerate(losses, start=1):
            with log.open("a", encoding="utf-8") as file:
                file.write(rows([loss], iteration))
            time.sleep(0.03)

    writer = threading.Thread(target=write)
    writer.start()
    note = f"import os, pathlib; pathlib.Path({str(mark)!r}).write_text(os.environ['LOSSBISECT_REASON'])"
    code, out = run(str(log), "--baseline", baseline, "--on-divergence", f'{sys.executable} -c "{note}"')
    writer.join()
    assert code == 1
    assert "DIVERGED: lm loss diverges from iteration 7 on" in out
    assert "iteration 7" in mark.read_text(encoding="utf-8")


def test_failure_after_the_last_iteration_is_told_and_changes_nothing(run: Run, baseline: str, tmp_path: Path) -> None:
    """All rows are there; one that comes before the end is another matter."""
    crash = "Traceback (most recent call last):\nRuntimeError: disk full\n"
    for rows_there, code in ((12, 0), (7, 3)):
        log = tmp_path / f"run-{rows_there}.log"
        log.write_text(rows(BASE[:rows_there]) + crash, encoding="utf-8")
        found, out = run(str(log), "--baseline", baseline, "--idle-timeout", "0.1")
        assert (found, "RuntimeError: disk full" in out) == (code, True)


def test_idle_log_ends_the_watch_undecided(run: Run, baseline: str, tmp_path: Path) -> None:
    """Nothing is written any more, and the end wasn't reached: no success."""
    log = tmp_path / "run.log"
    log.write_text(rows(BASE[:5]), encoding="utf-8")
    code, out = run(str(log), "--baseline", baseline, "--idle-timeout", "0.1")
    assert (code, "up to iteration 5 of 12, but the log hasn't changed for 0.1 s" in out) == (3, True)


def test_end_mark_ends_the_watch(run: Run, baseline: str, tmp_path: Path) -> None:
    """The trainer's own word."""
    log = tmp_path / "run.log"
    log.write_text(rows(BASE[:5]) + "[after training is done] datetime: 2026-08-22 10:01:00 \n", encoding="utf-8")
    code, out = run(str(log), "--baseline", baseline)
    assert (code, "the run has ended" in out) == (0, True)


def test_until_iteration_ends_the_watch(run: Run, baseline: str, tmp_path: Path) -> None:
    """Earlier than the baseline's last one."""
    log = tmp_path / "run.log"
    log.write_text(rows(BASE[:5]), encoding="utf-8")
    code, out = run(str(log), "--baseline", baseline, "--until-iteration", "4")
    assert (code, "iteration 5 is reached" in out) == (0, True)


def test_log_without_a_row_is_no_success(run: Run, baseline: str, tmp_path: Path) -> None:
    """No data is never 0."""
    code, out = run(str(tmp_path / "none.log"), "--baseline", baseline, "--idle-timeout", "0.05")
    assert (code, out.startswith("UNDECIDED")) == (3, True)


def test_truncated_and_restarted_file_loses_no_row(
    run: Run, baseline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rotation replaces the file between two looks; rows that were seen stay seen."""
    log = tmp_path / "run.log"
    log.write_text(rows(BASE[:6]), encoding="utf-8")
    look = GrowingLog.look

    def look_and_rotate(growing: GrowingLog) -> bool:
        has_news = look(growing)
        if growing.log is not None and growing.log.iterations.height == 6:
            log.write_text(rows(BASE[6:], 7), encoding="utf-8")
        return has_news

    monkeypatch.setattr(GrowingLog, "look", look_and_rotate)
    code, out = run(str(log), "--baseline", baseline, "--idle-timeout", "5")
    assert code == 0
    assert out.count(" vs ") == 12
