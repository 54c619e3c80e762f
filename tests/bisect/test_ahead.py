"""Work that is begun ahead, and commits that are tried first: the answer stays, the time goes down."""

import threading
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.culprit import Answer
from lossbisect.bisect.events import EventKind
from lossbisect.bisect.search import narrow
from lossbisect.bisect.types import CommitVerdict, Role
from lossbisect.errors import EndpointError
from lossbisect.train.types import Outcome, RunRecord
from tests.bisect.support import GOOD_CURVE, Script
from tests.bisect.test_driver import Bench, index_of, one_change

WAIT_S = 20.0


class Held:
    """A bench whose second run of the good end waits for a search run to begin."""

    def __init__(self, folder: Path, count: int, at: int) -> None:
        self.bench = Bench(folder, count, one_change(at))
        self.has_begun = threading.Event()
        self.was_ahead = False
        self.bench.runner.change = self._hold

    def _hold(self, record: RunRecord, _: int) -> RunRecord:
        index = index_of(record.spec.sources.mcore_commit or "")
        if 0 <= index < len(self.bench.commits.commits) - 1:
            self.has_begun.set()
        elif index == -1 and record.out.name.split("-")[1:3] == ["good", "again"]:
            self.was_ahead = self.has_begun.wait(WAIT_S)
        return record


def test_the_search_begins_while_the_good_end_repeats_itself(tmp_path: Path) -> None:
    """With a slot left the first run of the search is under way before the noise is known, and it counts."""
    held = Held(tmp_path, 31, 12)
    finding = held.bench.drive(jobs=2)
    assert held.was_ahead
    assert (finding.answer, finding.bad) == (Answer.FOUND, 12)
    ran = [step.index for step in finding.steps if step.role is Role.SEARCH]
    assert len(ran) == len(set(ran)), "and it isn't run again"


def test_one_slot_does_one_thing_after_another(tmp_path: Path) -> None:
    """Without a slot left nothing is begun ahead."""
    bench = Bench(tmp_path, 31, one_change(12))
    assert bench.drive(jobs=1).bad == 12
    assert bench.ran[:3] == [-1, 30, -1]


def test_ends_that_are_equal_begin_no_search(tmp_path: Path) -> None:
    """There is nothing to search, and no commit in between is run."""
    bench = Bench(tmp_path, 31, lambda _: GOOD_CURVE)
    assert bench.drive(jobs=4).answer is Answer.NO_CULPRIT
    assert set(bench.ran) == {-1, 30}


def test_a_run_begun_ahead_of_a_noisy_search_is_no_step(tmp_path: Path) -> None:
    """Where the good end turns out not to repeat itself, what was begun for the exact search is ended unseen."""
    bench = Bench(tmp_path, 31, one_change(12))
    inner, runs, was_stopped, held = bench.runner.script, 0, threading.Event(), list[int]()

    def noisy(sha: str) -> Script:
        nonlocal runs
        runs += 1
        return tuple(value + 1e-5 * (runs % 7) for value in inner(sha))  # type: ignore[operator]

    def hold(record: RunRecord, _: int) -> RunRecord:
        commit = record.spec.sources.mcore_commit or ""
        if 0 <= index_of(commit) < 30 and not held:
            held.append(index_of(commit))
            stop, waited = bench.runner.stops[commit], threading.Event()
            try:
                while not stop():
                    waited.wait(1e-3)
            finally:
                was_stopped.set()
        return record

    bench.runner.script, bench.runner.change = noisy, hold
    finding = bench.drive(jobs=2)
    assert was_stopped.is_set()
    assert finding.noise is not None
    assert finding.noise.source == "repeats"
    assert sum(step.index == held[0] for step in finding.steps) == bench.ran.count(held[0]) - 1


def test_an_end_that_fails_ends_what_was_begun_ahead(tmp_path: Path) -> None:
    """The good end's second run fails: its error comes through, and no run is left behind."""
    bench = Bench(tmp_path, 31, one_change(12))

    def fail(record: RunRecord, _: int) -> RunRecord:
        is_again = "good-again" in record.out.name
        return replace(record, outcome=Outcome.FAILED, reason="OOM") if is_again else record

    bench.runner.change = fail
    with pytest.raises(EndpointError, match="good end"):
        bench.drive(jobs=2)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("run_")]


def test_runs_that_are_kept_are_asked_for_first(tmp_path: Path) -> None:
    """A second search over a range takes its commits from the first one's runs, whatever order they end in."""
    first = Bench(tmp_path / "first", 200, one_change(77))
    first.drive(jobs=2)
    for jobs in (1, 2, 3):
        second = Bench(tmp_path / f"second-{jobs}", 200, one_change(77))
        second.kept = [sorted(set(first.ran) - {-1})]
        assert second.drive(jobs=jobs).bad == 77
        assert set(second.ran) <= set(first.ran)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), st.data())
def test_whatever_is_preferred_the_answer_is_the_same(where: tuple[int, int], data: st.DataObject) -> None:
    """Any groups of preferred commits, also such as can't be tested: the change is named all the same."""
    count, at = where
    groups = data.draw(st.lists(st.lists(st.integers(0, count - 1), unique=True).map(sorted), max_size=3))
    verdicts: dict[int, CommitVerdict] = {}
    while (bracket := narrow(count, verdicts, preferred=groups)).next is not None:
        left = next((g for g in groups if any(bracket.good < i < bracket.bad for i in g)), None)
        assert left is None or bracket.next in left
        verdicts[bracket.next] = CommitVerdict.BAD if bracket.next >= at else CommitVerdict.GOOD
    assert list(bracket.candidates) == [at]


def test_a_bench_says_what_is_ahead() -> None:
    """The run that is begun ahead is told as the search's."""
    with TemporaryDirectory() as folder:
        held = Held(Path(folder), 31, 12)
        held.bench.drive(jobs=2)
        told = held.bench.texts(EventKind.RUN_STARTED)
    assert "(good end again)" in told[2]
    assert "(search)" in told[3]
