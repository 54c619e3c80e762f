"""A growing log read on: the same rows as one read of the whole, at the cost of what was added."""

import random
from pathlib import Path

import polars as pl
import pytest

from lossbisect.cli.follow import GrowingLog
from lossbisect.parsers import read_log

SEED = 20260822


def row(iteration: int, loss: float | None, total: int = 500, *, interval: int = 1) -> str:
    """One row of a console log."""
    second = iteration % 60
    lm_loss = "" if loss is None else f"| lm loss: {loss:.6E} "
    return (
        f" [2026-08-22 10:{iteration // 60 % 60:02d}:{second:02d}] iteration {iteration:8d}/{total:8d} "
        f"| consumed samples: {iteration * 8 * interval:12d} "
        f"| elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:     8 "
        f"{lm_loss}| loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 "
        f"| number of nan iterations:   0 |\n"
    )


def text(rows: int) -> str:
    """A log with a little talk between its rows."""
    lines = ["using world size: 1\n", "> building the model\n"]
    for iteration in range(1, rows + 1):
        lines.append(row(iteration, 5 - iteration / 1000))
        if iteration % 7 == 0:
            lines.append(f"saving checkpoint at iteration {iteration:7d} to /checkpoints\n")
    return "".join(lines)


@pytest.mark.parametrize("draw", range(4))
def test_pieces_of_any_length_give_the_rows_of_the_whole(tmp_path: Path, draw: int) -> None:
    """Cut in the middle of rows and words; line numbers included."""
    whole = text(120).encode()
    print(f"seed {SEED} {draw}")  # noqa: T201
    rng = random.Random(f"{SEED} {draw}")
    grown, reference = tmp_path / "run.log", tmp_path / "whole.log"
    reference.write_bytes(whole)
    log, at = GrowingLog(grown), 0
    while at < len(whole):
        at = min(len(whole), at + rng.randrange(1, 6000))
        grown.write_bytes(whole[:at])
        log.look()
    assert log.log is not None
    expected = read_log(reference).iterations
    assert log.log.iterations.select(expected.columns).equals(expected)
    assert log.bytes_read < 1.3 * len(whole)


def test_nothing_new_is_not_read(tmp_path: Path) -> None:
    """Neither a file that isn't there yet, nor one that hasn't changed."""
    path = tmp_path / "run.log"
    log = GrowingLog(path)
    assert not log.look()
    path.write_text(text(20), encoding="utf-8")
    assert log.look()
    read = log.bytes_read
    assert not log.look()
    assert log.bytes_read == read


def test_rotated_file_adds_an_attempt(tmp_path: Path) -> None:
    """Rows of the old file stay; the new one's count where they repeat."""
    path = tmp_path / "run.log"
    path.write_text(text(20), encoding="utf-8")
    log = GrowingLog(path)
    log.look()
    path.rename(tmp_path / "run.log.1")
    path.write_text(row(21, 1.0) + row(22, 2.0), encoding="utf-8")
    log.look()
    assert log.log is not None
    frame = log.log.iterations
    assert frame["iteration"].to_list() == list(range(1, 23))
    assert frame["attempt"].to_list() == [0] * 20 + [1] * 2


def test_truncated_file_that_grew_past_its_old_length_is_read_from_its_start(tmp_path: Path) -> None:
    """The same file, another beginning: what was read before isn't there any more."""
    path = tmp_path / "run.log"
    path.write_text(text(10), encoding="utf-8")
    log = GrowingLog(path)
    log.look()
    path.write_text("".join(row(iteration, 3.0) for iteration in range(5, 30)), encoding="utf-8")
    log.look()
    assert log.log is not None
    latest = log.log.iterations.unique("iteration", keep="last").sort("iteration")
    assert latest["lm_loss"].to_list() == pytest.approx([5 - i / 1000 for i in range(1, 5)] + [3.0] * 25)


def test_restart_in_the_file_begins_an_attempt_once(tmp_path: Path) -> None:
    """Also if its rows come in one by one."""
    path = tmp_path / "run.log"
    pieces = [text(10), *(row(iteration, 4.0) for iteration in range(8, 14))]
    log = GrowingLog(path)
    for count in range(1, len(pieces) + 1):
        path.write_text("".join(pieces[:count]), encoding="utf-8")
        log.look()
    assert log.log is not None
    assert log.log.iterations["attempt"].to_list() == [0] * 10 + [1] * 6
    assert log.log.iterations["iteration"].to_list() == [*range(1, 11), *range(8, 14)]


def test_absent_losses_of_late_rows_are_not_lost(tmp_path: Path) -> None:
    """A NaN makes the printer leave the loss out; a piece that holds only such rows says so."""
    path = tmp_path / "run.log"
    log = GrowingLog(path)
    path.write_text(text(10), encoding="utf-8")
    log.look()
    with path.open("a", encoding="utf-8") as file:
        file.write(row(11, None) + row(12, None))
    log.look()
    assert log.log is not None
    tail = log.log.iterations.tail(2)
    assert tail["iteration"].to_list() == [11, 12]
    assert tail.select((pl.col("lm_loss").is_null() | pl.col("lm_loss").is_nan()).all()).item()


def test_end_mark_counts_until_a_further_row(tmp_path: Path) -> None:
    """A restarted run goes on."""
    path = tmp_path / "run.log"
    log = GrowingLog(path)
    path.write_text(text(10) + "[after training is done] datetime: 2026-08-22 10:01:00 \n", encoding="utf-8")
    log.look()
    assert log.has_ended
    with path.open("a", encoding="utf-8") as file:
        file.write(row(11, 4.0))
    log.look()
    assert not log.has_ended
