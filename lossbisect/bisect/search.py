"""Which commit to run next. Pure: verdicts in, an index out.

Commits are numbered 0 to ``count - 1``, oldest first. -1 is the good end, ``count - 1`` the bad end. A change is taken
to lie somewhere in between; verdicts that contradict a single change are reported, never smoothed over.

A midpoint that can't be tested is no evidence, and untestable commits come in runs (a missing import lasts until it is
repaired). So each index is valued by what it would tell if it ran, times how likely it is to run: the chance falls off
near a skipped commit, over a distance that doubles with each skip. One skip costs a step aside; a long run is jumped
over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2

from lossbisect.bisect.types import CommitVerdict

__all__ = ["Bracket", "narrow"]

SKIPS_ENOUGH = 12
"""Untestable commits around the culprit after which a run of them isn't probed further from the inside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bracket:
    """What is known, and what to do next.

    Attributes:
        good: Highest index known good below ``bad``; -1 is the good end.
        bad: Lowest index known bad.
        next: Index to test, never tested before; None if the search is over.
        skipped: Untestable indices between the two, ascending.
        contradictions: Good indices above ``bad``, ascending: more than one change lies in the range.
    """

    good: int
    bad: int
    next: int | None
    skipped: tuple[int, ...]
    contradictions: tuple[int, ...]

    @property
    def candidates(self) -> range:
        """Indices that may hold the change: after ``good``, up to and with ``bad``. One alone is the culprit's."""
        return range(self.good + 1, self.bad + 1)

    @property
    def runs_left(self) -> int:
        """Runs that the search still needs if no commit is untestable."""
        return 0 if self.next is None else ceil(log2(len(self.candidates)))


def narrow(count: int, verdicts: Mapping[int, CommitVerdict], *, skips_enough: int = SKIPS_ENOUGH) -> Bracket:
    """The bracket that the verdicts leave, and the next index to test.

    Args:
        count: Number of commits after the good end, the bad end included; at least 1.
        verdicts: What is known so far, by index. Both ends are known and may be left out.
        skips_enough: Once every untested candidate lies between two skipped ones and there are this many skipped ones,
            the search ends with several candidates.
    """
    if count < 1:
        raise ValueError(f"a range needs at least one commit after the good end, not {count}")
    bad = min((i for i, v in verdicts.items() if v is CommitVerdict.BAD), default=count - 1)
    good = max((i for i, v in verdicts.items() if v is CommitVerdict.GOOD and i < bad), default=-1)
    skipped = tuple(sorted(i for i, v in verdicts.items() if v is CommitVerdict.SKIP and good < i < bad))
    return Bracket(
        good=good,
        bad=bad,
        next=_next(good, bad, skipped, skips_enough),
        skipped=skipped,
        contradictions=tuple(sorted(i for i, v in verdicts.items() if v is CommitVerdict.GOOD and i > bad)),
    )


def _next(good: int, bad: int, skipped: tuple[int, ...], skips_enough: int) -> int | None:
    untested = sorted(set(range(good + 1, bad)).difference(skipped))
    if not untested:
        return None
    if len(skipped) >= skips_enough and skipped[0] < untested[0] and untested[-1] < skipped[-1]:
        return None
    reach = 2.0 ** (len(skipped) - 1)

    def value(i: int) -> tuple[float, int]:
        information = _entropy((i - good) / (bad - good))
        if not skipped:
            return information, -i
        distance = min(abs(i - s) for s in skipped)
        chance = distance / (distance + reach)
        if skipped[0] < i < skipped[-1]:
            chance /= reach  # between two untestable commits
        return information * chance, -i

    return max(untested, key=value)


def _entropy(share: float) -> float:
    """Bits that a yes-or-no answer carries whose yes has this probability, 0 < share < 1."""
    return -share * log2(share) - (1 - share) * log2(1 - share)
