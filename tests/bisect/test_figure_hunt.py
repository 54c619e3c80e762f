"""Slower iterations and higher peaks of memory: scripted runs whose consoles tell them."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.figures import figure_of
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.bisect.types import Role
from lossbisect.errors import EndpointError
from lossbisect.parsers import read_log
from lossbisect.train.types import RunRecord
from tests.bisect.support import GOOD_CURVE
from tests.bisect.test_driver import Bench, index_of

SLOWER = SearchOptions(regress=Regress.THROUGHPUT, revert=False)
HIGHER = SearchOptions(regress=Regress.MEMORY, revert=False)
ROW = (
    " [2026-08-22 15:22:{n:02d}] iteration {n:8d}/      12 | consumed samples: {n:12d} | "
    "elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.000000E-03 | global batch size:     8 | "
    "lm loss: 1.050000E+01 | loss scale: 1.0 | "
    "grad norm: 1.000 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
PEAK = (
    "[Rank 0] (after 2 iterations) memory (MB) | allocated: 10.0 | max allocated: {mb:.1f} | reserved: 9.0 | "
    "max reserved: 9.0\n"
)


def console(times: list[float], mb: float | None = None) -> str:
    """What a trainer prints of these times, and of a peak."""
    return "".join(ROW.format(n=n, ms=ms) for n, ms in enumerate(times, start=1)) + (
        "" if mb is None else PEAK.format(mb=mb)
    )


def printing(bench: Bench, text: Callable[[int, int], str]) -> Bench:
    """The same bench, whose runs print the text for their commit and the run's number."""

    def change(record: RunRecord, number: int) -> RunRecord:
        commit = index_of(record.spec.sources.mcore_commit or "")
        record.console.write_text(text(commit, number), encoding="utf-8")
        return record

    bench.runner.change = change
    return bench


def timed(folder: Path, at: int, *, seed: int, slower: float = 1.2, noise: float = 0.02) -> Bench:
    """Twelve commits, slower from one on; the very first run is cold, and each run's first iterations are."""
    chance = random.Random(seed)

    def text(commit: int, number: int) -> str:
        base = 100.0 * (slower if commit >= at else 1.0) * (1 + chance.gauss(0, noise)) * (1.5 if number == 1 else 1)
        return console([5000.0, 900.0, *(base * (1 + chance.gauss(0, noise)) for _ in range(10))])

    return printing(Bench(folder, 12, lambda _: GOOD_CURVE), text)


def test_names_the_commit_that_made_iterations_slower(tmp_path: Path) -> None:
    """With noise of 2 % a slowdown of 20 % is named in every one of six searches, with both times."""
    for seed in range(1, 7):
        at = 2 * seed - 1
        finding = timed(tmp_path / str(seed), at, seed=seed).drive(search=SLOWER)
        assert (finding.answer, finding.bad) == (Answer.FOUND, at), f"seed {seed}"
        assert "time per iteration" in finding.reason
        assert finding.probability is not None
        assert finding.probability >= 0.95


def test_the_first_run_only_warms_the_machine_up(tmp_path: Path) -> None:
    """A cold first run is made, and counts for nothing; nothing is taken from the run store."""
    bench = timed(tmp_path, 6, seed=7)
    finding = bench.drive(search=SLOWER)
    assert [step.role for step in finding.steps[:3]] == [Role.WARM_UP, Role.GOOD_END, Role.BAD_END]
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
    assert set(bench.runner.repeats) == {None}


def test_ends_within_their_noise_have_no_culprit(tmp_path: Path) -> None:
    """A difference that the noise explains is refused with both figures, after a bounded number of runs."""
    bench = timed(tmp_path, 6, seed=8, slower=1.001)
    finding = bench.drive(search=SLOWER)
    assert finding.answer is Answer.NO_CULPRIT
    assert len(bench.ran) <= 13


def test_a_faster_bad_end_has_no_culprit(tmp_path: Path) -> None:
    """A speedup is no slowdown: that is said after the ends, without a search."""
    bench = timed(tmp_path, 6, seed=9, slower=0.7)
    finding = bench.drive(search=SLOWER)
    assert finding.answer is Answer.NO_CULPRIT
    assert "isn't worse" in finding.reason
    assert len(bench.ran) == 5


def test_names_the_commit_that_takes_more_memory(tmp_path: Path) -> None:
    """A peak that is exact in every run is found like any other figure."""
    bench = Bench(tmp_path, 12, lambda _: GOOD_CURVE)
    printing(bench, lambda commit, _: console([100.0] * 6, mb=2048.0 if commit >= 4 else 1024.0))
    finding = bench.drive(search=HIGHER)
    assert (finding.answer, finding.bad) == (Answer.FOUND, 4)
    assert "1,024.0 MB before it, 2,048.0 MB with it (+100.0%)" in finding.reason


@pytest.mark.parametrize("mb", [None, 0.0])
def test_a_run_that_tells_no_figure_is_refused_at_an_end(tmp_path: Path, mb: float | None) -> None:
    """Without a peak of memory in the log, or one of 0 without a GPU, there is nothing to hunt: the line says so."""
    bench = printing(Bench(tmp_path, 4, lambda _: GOOD_CURVE), lambda _commit, _number: console([100.0] * 6, mb=mb))
    with pytest.raises(EndpointError, match="no peak of memory"):
        bench.drive(search=HIGHER)


@pytest.mark.parametrize(
    ("times", "expected"),
    [([9000.0, 900.0, 100.0, 101.0, 103.0], 101.0), ([9000.0, 900.0, 100.0, 101.0], None), ([], None)],
)
def test_the_warm_up_is_left_out(tmp_path: Path, times: list[float], expected: float | None) -> None:
    """The median is that of the iterations after the first three tenths, at least two; three have to be left."""
    log = tmp_path / "console.log"
    log.write_text(console(times) or ROW.format(n=1, ms=1.0).replace("elapsed time per iteration (ms): 1.0 | ", ""))
    assert figure_of(read_log(log), Regress.THROUGHPUT) == expected


def test_ends_that_only_look_better_at_first_are_measured_on(tmp_path: Path) -> None:
    """Where the noise alone makes the bad end look faster in two runs, more runs are made before anything is said."""
    bench = Bench(tmp_path, 12, lambda _: GOOD_CURVE)
    first = {2: 112.0, 3: 109.0, 4: 106.0, 5: 107.0}  # the ends' first runs: good, bad, good, bad

    def text(commit: int, number: int) -> str:
        base = 120.0 if commit >= 6 else 100.0
        return console([5000.0, 900.0, *([first.get(number, base + number % 3)] * 10)])

    finding = printing(bench, text).drive(search=SLOWER)
    assert len(bench.ran) > 8
    assert (finding.answer, finding.bad) == (Answer.FOUND, 6)
