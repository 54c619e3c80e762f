"""Exact search: every verdict is right. Pure: verdicts in, indices out.

Commits are numbered 0 to ``count - 1``, oldest first. -1 is the good end, ``count - 1`` the bad end. What is looked for
is the change that leads to the bad end: the last place where a good commit comes before a bad one. Bad commits before
that are reported, never smoothed over: there the change came, went, and came again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log

from lossbisect.bisect.choose import Segment, choose
from lossbisect.bisect.types import CommitVerdict

__all__ = ["SKIPS_ENOUGH", "Bracket", "narrow"]

SKIPS_ENOUGH = 12
"""Untestable commits around the culprit after which a run of them isn't probed further from the inside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bracket:
    """What is known, and what to do next.

    Attributes:
        good: Highest index known good.
        bad: Lowest index above it that is known bad.
        wanted: Indices to test now, never tested before; empty if nothing is left to start, or the search is over.
        is_over: Nothing more can be learnt.
        skipped: Untestable indices between the two, ascending.
        contradictions: Bad indices below ``good``, ascending: the change was there before, and was taken back.
    """

    good: int
    bad: int
    wanted: tuple[int, ...]
    is_over: bool
    skipped: tuple[int, ...]
    contradictions: tuple[int, ...]

    @property
    def next(self) -> int | None:
        """Index to test first; None if there is none."""
        return self.wanted[0] if self.wanted else None

    @property
    def candidates(self) -> range:
        """Indices that may hold the change: after ``good``, up to and with ``bad``. One alone is the culprit's."""
        return range(self.good + 1, self.bad + 1)

    def rounds_left(self, jobs: int = 1) -> int:
        """Rounds of ``jobs`` runs at once that the search still needs if no commit is untestable."""
        return 0 if self.is_over else ceil(log(len(self.candidates), jobs + 1) - 1e-9)

    @property
    def runs_left(self) -> int:
        """Runs that the search still needs, one at a time, if no commit is untestable."""
        return self.rounds_left()


def narrow(
    count: int,
    verdicts: Mapping[int, CommitVerdict],
    *,
    jobs: int = 1,
    running: Sequence[int] = (),
    preferred: Sequence[Sequence[int]] = (),
    skips_enough: int = SKIPS_ENOUGH,
) -> Bracket:
    """The bracket that the verdicts leave, and what to test next.

    Args:
        count: Number of commits after the good end, the bad end included; at least 1.
        verdicts: What is known so far, by index. Both ends are known and may be left out.
        jobs: How many runs can be started.
        running: Indices that are being tested.
        preferred: Indices that are better tested than others, ascending, those that are best first, and then others.
            The first of these groups that has any left to test counts alone in what is chosen. That changes the order,
            never the answer.
        skips_enough: Once every untested candidate lies between two skipped ones and there are this many skipped ones,
            the search ends with several candidates.
    """
    if count < 1:
        raise ValueError(f"a range needs at least one commit after the good end, not {count}")
    bads = sorted({*(i for i, v in verdicts.items() if v is CommitVerdict.BAD), count - 1})
    good = max((i for i, v in verdicts.items() if v is CommitVerdict.GOOD and i < count - 1), default=-1)
    bad = next(i for i in bads if i > good)
    skipped = tuple(sorted(i for i, v in verdicts.items() if v is CommitVerdict.SKIP and good < i < bad))
    untested = bad - good - 1 - len(skipped)
    is_over = untested == 0 or _is_walled_in(good, bad, skipped, skips_enough)
    inner = [i for i in running if good < i < bad]
    wanted = _chosen(good, bad, jobs, inner, skipped, preferred)
    return Bracket(
        good=good,
        bad=bad,
        wanted=() if is_over else wanted,
        is_over=is_over,
        skipped=skipped,
        contradictions=tuple(i for i in bads if i < good),
    )


def _chosen(
    good: int,
    bad: int,
    jobs: int,
    running: Sequence[int],
    skipped: Sequence[int],
    preferred: Sequence[Sequence[int]],
) -> tuple[int, ...]:
    """What to test: the range without what isn't preferred is cut as if it were the whole one."""
    known = [*running, *skipped]
    places = next((kept for group in preferred if (kept := _kept(good, bad, known, group))), range(good + 1, bad + 1))
    at = {index: place for place, index in enumerate(places)}
    segment = Segment(start=0, stop=len(places), mass=1.0)
    chosen = choose(
        [segment], jobs, running=[at[i] for i in running], skipped=[at[i] for i in skipped], last=len(places) - 1
    )
    return tuple(places[place] for place in chosen)


def _kept(good: int, bad: int, known: Sequence[int], group: Sequence[int]) -> Sequence[int]:
    """Where to cut if only this group counts; empty if nothing of it is left to test."""
    inner = group[bisect_right(group, good) : bisect_left(group, bad)]
    # A run at a commit tells of those up to it: one just before a likely commit is as good as one well before it.
    return sorted({*inner, *known, bad}) if set(inner) - set(known) else ()


def _is_walled_in(good: int, bad: int, skipped: tuple[int, ...], skips_enough: int) -> bool:
    """There are enough skipped commits, and every untested one lies between two of them."""
    return len(skipped) >= skips_enough and skipped[0] == good + 1 and skipped[-1] == bad - 1
