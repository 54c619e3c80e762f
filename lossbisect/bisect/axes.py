"""Which part of two set-ups makes the difference. Pure.

Two set-ups differ in some of their parts. Each run mixes them: some parts from the bad set-up, the rest from the good
one. A mix with the bad set-up's curve needs nothing but its own parts to be bad.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lossbisect.bisect.types import CommitVerdict

__all__ = ["Axis", "Carried", "Mix", "carried_by", "next_mix"]


class Axis(StrEnum):
    """A part of a set-up; in the order in which they are tried."""

    MCORE = "Megatron-Core"
    BRIDGE = "Megatron Bridge"
    RECIPE = "the recipe"
    ENVIRONMENT = "the environment"


type Mix = frozenset[Axis]
"""The parts that come from the bad set-up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """What makes the difference.

    Attributes:
        axes: The parts without which it isn't there; one alone carries it by itself. Empty if that can't be told.
        others: Parts that may be needed too: what would tell can't be run.
        reason: One sentence.
    """

    axes: tuple[Axis, ...]
    others: tuple[Axis, ...]
    reason: str

    @property
    def is_alone(self) -> bool:
        """One part carries the whole difference by itself."""
        return len(self.axes) == 1 and not self.others


def next_mix(axes: Sequence[Axis], known: Mapping[Mix, CommitVerdict]) -> Mix | None:
    """The mix to run next, or None if nothing more is to be learnt.

    Each part alone first, until one is bad by itself; with three parts or more then all but one.

    Args:
        axes: The parts that differ, the likeliest first; at least two.
        known: Verdicts on mixes. The set-ups themselves, none and all of the parts, are known and left out.
    """
    if any(known.get(frozenset([axis])) is CommitVerdict.BAD for axis in axes):
        return None
    return next((mix for mix in _mixes(axes) if mix not in known), None)


def carried_by(axes: Sequence[Axis], known: Mapping[Mix, CommitVerdict]) -> Carried:
    """What the verdicts on mixes say, once `next_mix` asks for nothing more."""
    alone = {axis: known.get(frozenset([axis]), CommitVerdict.SKIP) for axis in axes}
    carriers = [axis for axis in axes if alone[axis] is CommitVerdict.BAD]
    if carriers:
        return Carried(axes=(carriers[0],), others=(), reason=f"{carriers[0].value} carries the difference by itself")
    if len(axes) > 2:
        without = {axis: known.get(frozenset(axes) - {axis}, CommitVerdict.SKIP) for axis in axes}
    else:  # to leave one of two out is to have the other alone
        without = {axis: next(alone[other] for other in axes if other is not axis) for axis in axes}
    needed = tuple(axis for axis in axes if without[axis] in (CommitVerdict.GOOD, CommitVerdict.OTHER))
    untold = tuple(axis for axis in axes if without[axis] is CommitVerdict.SKIP)
    own = [axis for axis in axes if alone[axis] is CommitVerdict.OTHER]
    if not needed and not untold:
        reason, untold = f"more than one combination of {_listed(axes)} makes it", tuple(axes)
    elif not needed:
        reason = f"it can't be told: the mixes of {_listed(axes)} can't be judged"
    elif untold:
        needs = "is needed" if len(needed) == 1 else "are needed"
        reason = f"{_listed(needed)} {needs}; whether {_listed(untold)} is too can't be told: the mix can't be judged"
    else:
        reason = f"only the combination of {_listed(needed)} makes the difference"
    told = f"; {_listed(own)} alone leads to another curve again" if own else ""
    return Carried(axes=needed, others=untold, reason=reason + told)


def _mixes(axes: Sequence[Axis]) -> Iterator[Mix]:
    yield from (frozenset([axis]) for axis in axes)
    if len(axes) > 2:
        yield from (frozenset(axes) - {axis} for axis in axes)


def _listed(axes: Sequence[Axis]) -> str:
    names = [axis.value for axis in axes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
