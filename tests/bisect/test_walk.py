"""Back from the bad end: which commit runs next, and that the walk finds another curve where there is one."""

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from lossbisect.bisect.types import CommitVerdict
from lossbisect.bisect.walk import next_back

GOOD, BAD, SKIP = CommitVerdict.GOOD, CommitVerdict.BAD, CommitVerdict.SKIP


def walk(last: int, verdict_of: dict[int, CommitVerdict]) -> list[int]:
    """The commits that a walk runs, in order; a commit without a verdict is bad."""
    known: dict[int, CommitVerdict] = {}
    while (index := next_back(last, known)) is not None:
        assert index not in known, f"{index} again, of {known}"
        assert -1 <= index < last
        known[index] = verdict_of.get(index, BAD)
    return list(known)


def test_the_distance_doubles() -> None:
    """1, 2, 4, 8 commits back, and at the end of the history the oldest one."""
    assert walk(20, {}) == [19, 18, 16, 12, 4, -1]


def test_the_first_other_curve_ends_it() -> None:
    """No commit is run behind the first one that differs."""
    assert walk(100, {84: GOOD}) == [99, 98, 96, 92, 84]


def test_a_hole_is_passed_over() -> None:
    """One commit that can't be run costs one run, and the distance goes on doubling."""
    assert walk(100, {92: SKIP, 84: GOOD}) == [99, 98, 96, 92, 84]


def test_behind_the_edge_nothing_runs() -> None:
    """Where all old commits fail the walk turns round, and finds the change that lies this side of the edge."""
    old = dict.fromkeys(range(-1, 90), SKIP)
    assert walk(100, old | dict.fromkeys(range(90, 94), GOOD)) == [99, 98, 96, 92]
    steps = walk(100, dict.fromkeys(range(-1, 94), SKIP) | {94: GOOD})
    assert steps == [99, 98, 96, 92, 84, 94]


@given(st.integers(min_value=0, max_value=2000), st.data())
def test_every_walk_ends_soon(last: int, data: st.DataObject) -> None:
    """Whatever fails, no commit is run twice, and there are about as many runs as doublings."""
    failing = data.draw(st.sets(st.integers(min_value=-1, max_value=max(0, last - 1)), max_size=200))
    assert len(walk(last, dict.fromkeys(failing, SKIP))) <= ceil(log2(last + 2)) + 12


@given(st.integers(min_value=1, max_value=2000), st.data())
def test_a_change_is_found_wherever_it_is(last: int, data: st.DataObject) -> None:
    """Where every commit runs, a walk ends at a commit from before the change, at most about twice as far back."""
    change = data.draw(st.integers(min_value=0, max_value=last))
    before = dict.fromkeys(range(-1, change), GOOD)
    steps = walk(last, before)
    assert steps[-1] in before
    assert last - steps[-1] <= max(2 * (last - change + 1), 1)
