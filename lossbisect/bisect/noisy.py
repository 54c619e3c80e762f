"""Search under noise: readings in, the next indices or the end of the search out. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2

from lossbisect.bisect.choose import Segment, choose
from lossbisect.bisect.posterior import Belief, Evidence, Reading, believe
from lossbisect.bisect.search import SKIPS_ENOUGH

__all__ = ["Outlook", "look_ahead", "most_runs"]

_ENOUGH_FOR_NOTHING = 12
"""Runs of the ends after which "no change" has only to be likelier than a change: one so small can't be bisected."""
_DOUBT = 0.02
"""Probability of "no change", from scores at the ends, above which the ends are run again before anything else."""
_FEW = 6
"""Runs of the ends below which their noise is known so badly that a tenth of that probability is asked for."""


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
    at_ends = [reading for reading in readings if reading.index in (-1, count - 1)]
    if evidence is Evidence.SCORE:
        ends = believe(count, at_ends, evidence)
        if len(at_ends) >= _ENOUGH_FOR_NOTHING and ends.no_change > 0.5:
            return _nothing(ends)
        doubt = _DOUBT if len(at_ends) >= _FEW else _DOUBT / 10
        if len(at_ends) < _ENOUGH_FOR_NOTHING and ends.no_change > doubt:
            more = min(free, _ENOUGH_FOR_NOTHING - len(at_ends) - len(running))
            run = [reading.index for reading in at_ends] + list(running)
            wanted = _balanced([count - 1] * max(0, more), count - 1, run)
            return Outlook(
                belief=ends, wanted=wanted, is_over=False, is_unchanged=False, candidates=range(count),
                probability=1 - ends.no_change,
            )  # fmt: skip
    belief = believe(count, readings, evidence)
    untestable = set(skipped).difference(reading.index for reading in readings)
    likeliest = max(belief.segments[:-1], key=lambda segment: segment.mass)
    is_futile = evidence is Evidence.SCORE and len(readings) >= _ENOUGH_FOR_NOTHING and belief.no_change > 0.5
    if belief.no_change >= confidence or is_futile:
        return _nothing(belief)
    wanted = choose(
        belief.segments, free, running=running, skipped=untestable, last=count - 1, error=max(belief.error, 1e-6)
    )
    if evidence is Evidence.SCORE:
        wanted = _balanced(wanted, count - 1, [reading.index for reading in readings] + list(running))
    is_named = likeliest.mass >= confidence and _is_final(likeliest, untestable, skips_enough)
    is_spent = len(readings) >= (most_runs(count) if most is None else most)
    if is_named:
        candidates, probability = range(likeliest.start, likeliest.stop), likeliest.mass
    else:
        held = belief.candidates(confidence)
        candidates = range(held[0].start, held[-1].stop)
        probability = sum(each.mass for each in belief.segments[:-1] if each.start in candidates)
    if is_named:
        tested = [reading.index for reading in readings] + list(running)
        lacking = [i for i in (likeliest.start - 1, likeliest.stop - 1) for _ in range(confirm - tested.count(i))]
        wanted = tuple(lacking[:free])
        is_named = not lacking and not running
    is_over = is_named or is_spent or not (wanted or running or free == 0)
    return Outlook(
        belief=belief,
        wanted=() if is_over else wanted,
        is_over=is_over,
        is_unchanged=False,
        candidates=candidates,
        probability=probability,
    )


def _nothing(belief: Belief) -> Outlook:
    return Outlook(
        belief=belief, wanted=(), is_over=True, is_unchanged=True, candidates=range(0), probability=belief.no_change
    )


def _balanced(wanted: Sequence[int], last: int, run: list[int]) -> tuple[int, ...]:
    """An end in place of a commit that has been run more often than that end.

    What a reading says depends on both sides' means, and the ends are the only commits whose side is known for sure.
    """
    chosen = []
    for index in wanted:
        behind = min((-1, last), key=run.count)
        chosen.append(behind if run.count(behind) < run.count(index) else index)
        run.append(chosen[-1])
    return tuple(chosen)


def _is_final(segment: Segment, untestable: set[int], skips_enough: int) -> bool:
    """Nothing inside can be tested, or not worth the runs."""
    inner = range(segment.start, segment.stop - 1)
    skipped = [index for index in inner if index in untestable]
    if len(skipped) == len(inner):
        return True
    return len(skipped) >= skips_enough and skipped[0] == inner[0] and skipped[-1] == inner[-1]
