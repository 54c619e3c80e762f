"""Which parts make a difference: for any truth, what the mixes say of it."""

from collections.abc import Callable
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from lossbisect.bisect.axes import Axis, Carried, Mix, carried_by, next_mix
from lossbisect.bisect.types import CommitVerdict

GOOD, BAD, OTHER, SKIP = CommitVerdict.GOOD, CommitVerdict.BAD, CommitVerdict.OTHER, CommitVerdict.SKIP
M, B, R, E = Axis.MCORE, Axis.BRIDGE, Axis.RECIPE, Axis.ENVIRONMENT


def ask(axes: list[Axis], verdict: Callable[[Mix], CommitVerdict]) -> tuple[Carried, list[Mix]]:
    """The answer, and the mixes that were run for it."""
    known: dict[Mix, CommitVerdict] = {}
    while (mix := next_mix(axes, known)) is not None:
        assert mix not in known
        assert 0 < len(mix) < len(axes), "the set-ups themselves are known"
        known[mix] = verdict(mix)
    return carried_by(axes, known), list(known)


def test_one_part_alone() -> None:
    """As soon as one part is bad by itself nothing more is run."""
    carried, ran = ask([M, B, R], lambda mix: BAD if B in mix else GOOD)
    assert (carried.axes, carried.is_alone, ran) == ((B,), True, [frozenset([M]), frozenset([B])])
    assert carried.reason == "Megatron Bridge carries the difference by itself"


def test_two_parts_together() -> None:
    """If neither of two is bad alone, it takes both."""
    carried, ran = ask([M, B], lambda _: GOOD)
    assert (carried.axes, carried.is_alone, len(ran)) == ((M, B), False, 2)
    assert carried.reason == "only the combination of Megatron-Core and Megatron Bridge makes the difference"


def test_two_of_three_together() -> None:
    """With three parts the one that isn't needed is left out of the combination."""
    carried, _ = ask([M, B, R], lambda mix: BAD if {M, R} <= mix else GOOD)
    assert carried.axes == (M, R)
    assert carried.others == ()


def test_parts_that_each_move_it() -> None:
    """Two parts that each change the curve make the bad one together, and that is said."""
    carried, _ = ask([M, B], lambda _: OTHER)
    assert carried.axes == (M, B)
    assert "alone leads to another curve again" in carried.reason


def test_what_cannot_run_is_not_cleared() -> None:
    """A mix that can't be run leaves its part in doubt; it is never called harmless, nor blamed."""
    carried, _ = ask([M, B], lambda mix: SKIP if mix == {M} else GOOD)
    assert (carried.axes, carried.others, carried.is_alone) == ((M,), (B,), False)
    carried, _ = ask([M, B], lambda _: SKIP)
    assert (carried.axes, carried.others) == ((), (M, B))


SETS = st.sets(st.sampled_from([M, B, R, E]), min_size=1)


@given(SETS, st.data())
def test_any_needed_set_is_found(needed: set[Axis], data: st.DataObject) -> None:
    """Whatever parts it takes, all of them are named and no other, in at most two runs a part."""
    axes = [axis for axis in Axis if axis in needed | data.draw(SETS)]
    if len(axes) == 1:
        return
    carried, ran = ask(axes, lambda mix: BAD if needed <= mix else GOOD)
    assert set(carried.axes) == needed
    assert not carried.others
    assert len(ran) <= 2 * len(axes)


@given(SETS, st.data())
def test_runs_that_fail_never_lead_to_a_wrong_name(needed: set[Axis], data: st.DataObject) -> None:
    """Whichever mixes can't be run, a part that is named is needed, and a needed one is named or left in doubt."""
    axes = [axis for axis in Axis if axis in needed | data.draw(SETS)]
    if len(axes) == 1:
        return
    mixes = list(map(frozenset, chain.from_iterable(combinations(axes, size) for size in range(1, len(axes)))))
    failing = set(data.draw(st.lists(st.sampled_from(mixes)))) if mixes else set()
    carried, _ = ask(axes, lambda mix: SKIP if mix in failing else BAD if needed <= mix else GOOD)
    assert set(carried.axes) <= needed
    assert needed <= set(carried.axes) | set(carried.others)
