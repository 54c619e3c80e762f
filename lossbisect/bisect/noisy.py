"""Search under noise: readings in, the next indices or the end of the search out. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2

from lossbisect.bisect.choose import Segment, choose
from lossbisect.bisect.posterior import Belief, Evidence, Reading, believe
from lossbisect.bisect.search import SKIPS_ENOUGH

__all__ = ["Outlook", "look_ahead", "most_runs"]

_NOTHING = 0.9
"""Probability from which "no change" is the answer to scores, if the confidence that is asked for isn't lower."""
_FEWEST_FOR_NOTHING = 6
"""Runs of the ends before that answer: less than three of each may all be off."""
_ENOUGH_FOR_NOTHING = 12
"""Runs of the ends after which "no change" has only to be likelier than a change: one so small can't be bisected."""
_DOUBT = 0.03
"""Probability of "no change" above which the ends are run, rather than a commit in between: they tell most of it."""
_VERDICTS_AT_ENDS = 6
"""Runs of the ends before a verdict in between: one bit each, they are all that says how often a verdict is wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is believed, and what to do next.

    Attributes:
        belief: Where the change may be.
        wanted: Indices to run now; an index may stand there several times.
        is_over: The search has its answer.
        is_unchanged: The answer is that nothing has changed.
        candidates: Commits that may hold the change, with the confidence asked for; the range between the first and
            the last of them. A single one is the culprit.
        probability: That the change is one of the candidates, or that there is none.
    """

    belief: Belief
    wanted: tuple[int, ...]
    is_over: bool
    is_unchanged: bool
    candidates: range
    probability: float


def most_runs(count: int) -> int:
    """Runs after which a search gives the candidates that are left; about what noise of two widths needs twice over."""
    return 24 + 12 * ceil(log2(count + 1))


def look_ahead(
    count: int,
    readings: Sequence[Reading],
    evidence: Evidence,
    *,
    confidence: float,
    free: int = 1,
    running: Sequence[int] = (),
    skipped: Iterable[int] = (),
    most: int | None = None,
    skips_enough: int = SKIPS_ENOUGH,
    confirm: int = 2,
) -> Outlook:
    """The state of a noisy search.

    Args:
        count: Number of commits after the good end, the bad end included.
        readings: What the runs so far have shown; both ends must have some.
        evidence: What kind of numbers they are.
        confidence: Probability from which an answer is given.
        free: How many runs can be started.
        running: Indices that are being run.
        skipped: Indices that can't be tested.
        most: Runs after which the search gives up; None: `most_runs`.
        skips_enough: So many untestable commits around the change are not probed further from the inside.
        confirm: How often the commit that is named, and the one before it, must have been run.
    """
    last = count - 1
    belief = believe(count, readings, evidence)
    at_ends = sum(reading.index in (-1, last) for reading in readings)
    enough = confidence
    if evidence is Evidence.SCORE:
        enough = 0.5 if at_ends >= _ENOUGH_FOR_NOTHING else min(confidence, _NOTHING)
    if at_ends >= _FEWEST_FOR_NOTHING and belief.no_change > enough:
        return Outlook(
            belief=belief, wanted=(), is_over=True, is_unchanged=True, candidates=range(0), probability=belief.no_change
        )
    run = [*(reading.index for reading in readings), *running]
    untestable = set(skipped).difference(reading.index for reading in readings)
    lacking = _VERDICTS_AT_ENDS - run.count(-1) - run.count(last)
    if evidence is Evidence.SCORE:
        lacking = free if belief.no_change > _DOUBT else 0
    if lacking > 0:
        wanted = _balanced([last] * min(free, lacking), last, run)
    else:
        error = max(belief.error, 1e-6)
        wanted = choose(belief.segments, free, running=running, skipped=untestable, last=last, error=error)
        if evidence is Evidence.SCORE:
            wanted = _balanced(wanted, last, run)
    likeliest = max(belief.segments[:-1], key=lambda segment: segment.mass)
    is_named = likeliest.mass >= confidence and _is_final(likeliest, untestable, skips_enough)
    is_spent = len(readings) >= (most_runs(count) if most is None else most)
    if is_named:
        candidates, probability = range(likeliest.start, likeliest.stop), likeliest.mass
    else:
        held = belief.candidates(confidence)
        candidates = range(held[0].start, held[-1].stop)
        probability = sum(each.mass for each in belief.segments[:-1] if each.start in candidates)
    if is_named:
        again = [i for i in (likeliest.start - 1, likeliest.stop - 1) for _ in range(confirm - run.count(i))]
        wanted = tuple(again[:free])
        is_named = not again and not running
    is_over = is_named or is_spent or not (wanted or running or free == 0)
    return Outlook(
        belief=belief,
        wanted=() if is_over else wanted,
        is_over=is_over,
        is_unchanged=False,
        candidates=candidates,
        probability=probability,
    )


def _balanced(wanted: Sequence[int], last: int, run: Sequence[int]) -> tuple[int, ...]:
    """An end in place of a commit that has been run more often than that end.

    What a reading says depends on both sides' means, and the ends are the only commits whose side is known for sure.
    """
    chosen: list[int] = []
    for index in wanted:
        times = Counter([*run, *chosen])
        behind = min((-1, last), key=times.__getitem__)
        chosen.append(behind if times[behind] < times[index] else index)
    return tuple(chosen)


def _is_final(segment: Segment, untestable: set[int], skips_enough: int) -> bool:
    """Nothing inside can be tested, or not worth the runs."""
    inner = range(segment.start, segment.stop - 1)
    skipped = [index for index in inner if index in untestable]
    if len(skipped) == len(inner):
        return True
    return len(skipped) >= skips_enough and skipped[0] == inner[0] and skipped[-1] == inner[-1]
