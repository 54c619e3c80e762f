"""A log that ends early: never the same in silence, unless it was meant to end there."""

from pathlib import Path

import pytest

from lossbisect.compare import Verdict, compare_logs, within
from lossbisect.parsers import read_log
from lossbisect.parsers.runlog import Failure, LossKind, RunLog
from tests.compare.logs import make_log

BASE = [5.0 - 0.01 * row for row in range(40)]
CRASH = Failure(kind="nccl", line_no=99, text="NCCL watchdog timeout")


def whole() -> RunLog:
    """Forty iterations of forty."""
    return make_log(BASE, planned=40)


@pytest.mark.parametrize("is_baseline", [False, True])
def test_log_that_ends_before_its_own_end_is_undecided(*, is_baseline: bool) -> None:
    """Either side; the sentence says where it ends, of how many, and what to do."""
    pair = [whole(), make_log(BASE[:25], planned=40)]
    judgement = compare_logs(*(reversed(pair) if is_baseline else pair))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "ends at iteration 25 of the 40 that it announces" in judgement.reason
    assert "--to 25" in judgement.reason


def test_run_that_was_meant_to_be_short_is_the_same_over_its_iterations() -> None:
    """And the first line says that the other goes on."""
    judgement = compare_logs(whole(), make_log(BASE[:25], planned=25))
    assert judgement.verdict is Verdict.SAME
    assert "25 iterations compared; the baseline goes on to iteration 40" in judgement.reason


def test_row_cut_at_the_end_is_undecided() -> None:
    """Also where the log announces no end; the value of the cut row isn't there."""
    losses: list[float | None] = [*BASE[:25], None]
    cut = make_log(losses, is_complete=[True] * 25 + [False])
    judgement = compare_logs(whole(), cut)
    assert judgement.verdict is Verdict.UNDECIDED
    assert "the log of the candidate is cut in iteration 26" in judgement.reason


def test_failure_is_told_before_anything_else() -> None:
    """Unless all that was planned had been trained."""
    failed = compare_logs(whole(), make_log(BASE[:25], planned=40, failure=CRASH))
    assert failed.verdict is Verdict.UNDECIDED
    assert "failed after iteration 25 of 40 (nccl: NCCL watchdog timeout)" in failed.reason
    after = compare_logs(whole(), make_log(BASE[:25], planned=25, failure=CRASH))
    assert after.verdict is Verdict.SAME


def test_last_interval_may_fall_short_of_the_end() -> None:
    """95 iterations at a log interval of 10 print 90 last."""
    rows = [5.0 - 0.1 * row for row in range(9)]
    at = list(range(10, 100, 10))
    short = make_log(rows, window=10, iteration=at, planned=95)
    other = make_log([*rows, 4.0], window=10, iteration=[*at, 100], planned=100)
    assert compare_logs(other, short).verdict is Verdict.SAME


def test_stretch_that_was_asked_for_needs_no_end() -> None:
    """With --to the user says that these iterations are all."""
    judgement = compare_logs(within(whole(), None, 25), within(make_log(BASE[:25], planned=40), None, 25))
    assert judgement.verdict is Verdict.SAME


def test_difference_before_the_cut_is_still_a_difference() -> None:
    """A cut file takes nothing away from what its rows show."""
    moved = [*BASE[:10], *(value * 1.02 for value in BASE[10:25])]
    assert compare_logs(whole(), make_log(moved, planned=40)).verdict is Verdict.DIVERGED


def test_log_without_an_announced_end_says_that_the_other_goes_on() -> None:
    """Goldens and event files hold what they hold."""
    judgement = compare_logs(make_log(BASE), make_log(BASE[:25]))
    assert judgement.verdict is Verdict.SAME
    assert "the baseline goes on to iteration 40" in judgement.reason


@pytest.mark.parametrize("is_baseline", [False, True])
def test_rows_lost_in_the_middle_are_undecided(*, is_baseline: bool) -> None:
    """What isn't there isn't the same; a side that logs more seldom has lost none."""
    kept = [*range(1, 11), *range(15, 41)]
    hole = make_log([BASE[iteration - 1] for iteration in kept], iteration=kept, planned=40)
    pair = [whole(), hole]
    judgement = compare_logs(*(reversed(pair) if is_baseline else pair))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "has no row for iterations 11 to 14, and the other has" in judgement.reason
    assert "rows-missing" in [item.shape for item in judgement.comparison.diagnoses]


def test_side_that_logs_every_fifth_iteration_lacks_no_row() -> None:
    """As golden files do, with the first iteration besides."""
    kept = [1, *range(5, 41, 5)]
    seldom = make_log(
        [BASE[iteration - 1] for iteration in kept], iteration=kept, loss_kind=LossKind.PER_ITERATION, planned=40
    )
    assert compare_logs(whole(), seldom).verdict is Verdict.SAME


@pytest.mark.parametrize("n_bytes", range(60, 440, 38))
def test_file_cut_at_any_byte_is_never_the_same(tmp_path: Path, n_bytes: int) -> None:
    """A real kind of row, cut anywhere in the last third of the file."""
    rows = [
        f" [2026-08-22 10:00:{second:02d}] iteration {second:8d}/      12 | consumed samples: {second * 8:12d} "
        f"| elapsed time per iteration (ms): 1000.0 | learning rate: 1.000000E-04 | global batch size:     8 "
        f"| lm loss: {5 - second / 10:.6E} | loss scale: 1.0 | grad norm: 1.000 | number of skipped iterations:   0 "
        f"| number of nan iterations:   0 |\n"
        for second in range(1, 13)
    ]
    text = "".join(rows)
    base, cut = tmp_path / "base.log", tmp_path / "cut.log"
    base.write_text(text, encoding="utf-8")
    cut.write_text(text[: len(text) - n_bytes], encoding="utf-8")
    judgement = compare_logs(read_log(base), read_log(cut))
    assert judgement.verdict is Verdict.UNDECIDED
    assert "the candidate" in judgement.reason
