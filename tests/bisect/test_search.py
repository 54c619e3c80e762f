"""The search, as arithmetic on indices."""

import time
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossbisect.bisect.search import Bracket, narrow
from lossbisect.bisect.types import CommitVerdict

GOOD, BAD, SKIP = CommitVerdict.GOOD, CommitVerdict.BAD, CommitVerdict.SKIP


def search(count: int, first_bad: int, skips: set[int], skips_enough: int = 12) -> tuple[Bracket, list[int]]:
    """Follow the search through a history with one change; the last bracket and the tested indices."""
    verdicts: dict[int, CommitVerdict] = {}
    while (bracket := narrow(count, verdicts, skips_enough=skips_enough)).next is not None:
        assert bracket.next not in verdicts
        assert bracket.good < bracket.next < bracket.bad
        verdicts[bracket.next] = SKIP if bracket.next in skips else BAD if bracket.next >= first_bad else GOOD
    return bracket, list(verdicts)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, set[int]]:
    """A number of commits, the first bad one, and commits that can't be tested."""
    count = draw(st.integers(1, 200))
    first_bad = draw(st.integers(0, count - 1))
    inner = st.integers(0, count - 2) if count > 1 else st.nothing()
    return count, first_bad, draw(st.sets(inner)) if count > 1 else set()


@settings(max_examples=300, deadline=None)
@given(histories(), st.integers(1, 30))
def test_the_bracket_always_holds_the_truth(history: tuple[int, int, set[int]], skips_enough: int) -> None:
    """For any history with one change and any skips the truth is a candidate, so a lone candidate is the truth."""
    count, first_bad, skips = history
    bracket, tested = search(count, first_bad, skips, skips_enough)
    assert first_bad in bracket.candidates
    assert len(tested) == len(set(tested))
    assert not bracket.contradictions


@settings(max_examples=200, deadline=None)
@given(histories())
def test_nothing_testable_is_left_open(history: tuple[int, int, set[int]]) -> None:
    """Without a limit on skips, the commits left besides the last one are all untestable."""
    count, first_bad, skips = history
    bracket, _ = search(count, first_bad, skips, skips_enough=count)
    assert set(bracket.candidates[:-1]) <= skips


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_costs_log2_without_skips(history: tuple[int, int]) -> None:
    """Where every commit can be tested the search takes at most log2 of their number, rounded up."""
    count, first_bad = history
    bracket, tested = search(count, first_bad, set())
    assert list(bracket.candidates) == [first_bad]
    assert len(tested) <= ceil(log2(count))


def test_a_long_run_of_skips_is_jumped_over() -> None:
    """Seventy-five untestable commits in a row cost a handful of runs, not seventy-five."""
    costs = []
    for first_bad in range(0, 340, 7):
        bracket, tested = search(340, first_bad, set(range(130, 205)))
        costs.append(len(tested))
        assert len(bracket.candidates) in (1, 76)
    assert max(costs) <= 24
    assert sum(costs) / len(costs) <= 14


def test_a_lone_skip_costs_about_one_run() -> None:
    """One untestable midpoint is stepped around."""
    bracket, tested = search(64, 20, {31})
    assert list(bracket.candidates) == [20]
    assert len(tested) <= ceil(log2(64)) + 2


def test_contradictions_are_reported() -> None:
    """A good commit after a bad one means more than one change: the one that leads to the bad end is looked for."""
    bracket = narrow(10, {2: GOOD, 4: BAD, 7: GOOD})
    assert bracket.contradictions == (4,)
    assert (bracket.good, bracket.bad) == (7, 9)


@pytest.mark.parametrize(("jobs", "points"), [(1, {31}), (2, {20, 42}), (3, {15, 31, 47})])
def test_several_runs_cut_the_range_into_equal_parts(jobs: int, points: set[int]) -> None:
    """With k runs at once the range is cut into k + 1 parts."""
    wanted = narrow(64, {}, jobs=jobs).wanted
    assert len(wanted) == jobs
    assert all(min(abs(index - point) for index in wanted) <= 1 for point in points)


def test_what_runs_is_not_started_again() -> None:
    """While one midpoint runs, a free slot takes the middle of one of its halves."""
    assert narrow(64, {}, running=[31]).wanted[0] in (15, 47)


def test_a_hundred_thousand_commits_are_planned_at_once() -> None:
    """Seven slots on a hundred thousand commits with skips are filled in well under a second."""
    started = time.perf_counter()
    wanted = narrow(100_000, dict.fromkeys(range(50_000, 50_005), SKIP), jobs=7).wanted
    assert len(set(wanted)) == 7
    assert time.perf_counter() - started < 5


def test_runs_left_halves() -> None:
    """The estimate is the number of halvings that are left."""
    assert narrow(31, {}).runs_left == 5
    assert narrow(31, {14: BAD}).runs_left == 4
    assert narrow(1, {}).runs_left == 0


def test_an_empty_range_is_refused() -> None:
    """A range without a commit after the good end is a wrong argument."""
    with pytest.raises(ValueError, match="at least one commit"):
        narrow(0, {})


def test_deciding_is_fast() -> None:
    """A decision among a thousand commits with skips takes well under 50 ms."""
    verdicts = dict.fromkeys(range(480, 500), SKIP)
    durations = []
    for _ in range(5):
        started = time.perf_counter()
        narrow(1000, verdicts)
        durations.append(time.perf_counter() - started)
    assert min(durations) < 0.05
