"""Search under noise: readings in, the next indices or the end of the search out. Pure.

A commit that is proven to give its parent's run can't hold the change. What is searched is the line of the places that
are left (`known.places_left`): a commit and those after it, up to the next place, count as one, since a run of any of
them is a run of all.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2

from lossbisect.bisect.choose import Segment, choose
from lossbisect.bisect.posterior import Belief, Evidence, Reading, believe
from lossbisect.bisect.search import SKIPS_ENOUGH

__all__ = ["Outlook", "contradict", "look_ahead", "most_runs"]

_NOTHING = 0.9
"""Probability from which "no change" is the answer to scores, if the confidence that is asked for isn't lower."""
_FEWEST_FOR_NOTHING = 6
"""Runs of the ends before that answer: less than three of each may all be off."""
_ENOUGH_FOR_NOTHING = 12
"""Runs of the ends after which "no change" has only to be likelier than a change: one so small can't be bisected."""
_DOUBT = 0.03
"""Probability of "no change" above which the ends are run, rather than a commit in between: they tell most of it."""
_CONTRADICTION = 100.0
"""Bayes factor from which the proof is doubted: where it holds, that happens in at most one of a hundred searches."""
_VERDICTS_AT_ENDS = 6
"""Runs of the ends before a verdict in between: one bit each, they are all that says how often a verdict is wrong."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """What is believed, and what to do next.

    Attributes:
        belief: Where the change may be, by position among the places.
        wanted: Indices to run now; an index may stand there several times.
        is_over: The search has its answer.
        is_unchanged: The answer is that nothing has changed.
        candidates: Commits that may hold the change, with the confidence asked for; all places from the first to the
            last of them. A single one is the culprit.
        probability: That the change is one of the candidates, or that there is none.
        unconfirmed: The culprit or its parent, where it can't be run itself.
    """

    belief: Belief
    wanted: tuple[int, ...]
    is_over: bool
    is_unchanged: bool
    candidates: Sequence[int]
    probability: float
    unconfirmed: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """The places that are left, as a range without the commits in between: what stands before the first one is -1."""

    places: Sequence[int]
    count: int

    def at(self, index: int) -> int:
        """The position of a commit."""
        return bisect_right(self.places, index) - 1

    def commits(self, position: int) -> range:
        """The commits of a position, which all give the same run."""
        after = position + 1
        stop = self.places[after] if after < len(self.places) else self.count
        return range(self.places[position] if position >= 0 else -1, stop)


def most_runs(count: int) -> int:
    """Runs after which a search gives the candidates that are left; about what noise of two widths needs twice over."""
    return 24 + 12 * ceil(log2(count + 1))


def contradict(count: int, readings: Sequence[Reading], evidence: Evidence, places: Sequence[int]) -> bool:
    """Whether the readings speak against it that the change is at one of the places, so that some run read more.

    That is judged by their mean likelihood (Bayes factor) over all commits that are said to give their parent's run,
    against that over the places that are left.
    """
    if len(places) in (0, count):
        return False
    left, folded = 0.0, 0.0
    for segment in believe(count, readings, evidence).segments[:-1]:
        inside = bisect_left(places, segment.stop) - bisect_left(places, segment.start)
        each = segment.mass / (segment.stop - segment.start)
        left += each * inside
        folded += each * (segment.stop - segment.start - inside)
    return folded / (count - len(places)) > _CONTRADICTION * left / len(places)


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
    places: Sequence[int] | None = None,
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
        confirm: How often the commit that is named, and the one before it, must have been run. Runs of commits that are
            proven to give the same run count, but one must be its own.
        places: Where the change may be, ascending; None: at any commit.
    """
    line = _Line(places=range(count) if places is None else places, count=count)
    if not line.places:
        return _nothing_left()
    itself = [*(reading.index for reading in readings), *running]
    tried = set(skipped)
    failed = tried.difference(reading.index for reading in readings)
    readings = [replace(reading, index=line.at(reading.index)) for reading in readings]
    running = [line.at(index) for index in running]
    last = len(line.places) - 1
    belief = believe(len(line.places), readings, evidence)
    at_ends = sum(reading.index in (-1, last) for reading in readings)
    enough = confidence
    if evidence is Evidence.SCORE:
        enough = 0.5 if at_ends >= _ENOUGH_FOR_NOTHING else min(confidence, _NOTHING)
    if at_ends >= _FEWEST_FOR_NOTHING and belief.no_change > enough:
        return Outlook(
            belief=belief, wanted=(), is_over=True, is_unchanged=True, candidates=range(0), probability=belief.no_change
        )
    run = [*(reading.index for reading in readings), *running]
    untestable = {line.at(index) for index in failed}.difference(reading.index for reading in readings)
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
    is_spent = len(readings) >= (most_runs(len(line.places)) if most is None else most)
    if is_named:
        candidates, probability = line.places[likeliest.start : likeliest.stop], likeliest.mass
    else:
        held = belief.candidates(confidence)
        inner = range(held[0].start, held[-1].stop)
        candidates = line.places[inner.start : inner.stop]
        probability = sum(each.mass for each in belief.segments[:-1] if each.start in inner)
    again: list[int] = []
    unconfirmed: tuple[int, ...] = ()
    if is_named:
        sides = (candidates[0] - 1, candidates[-1])
        unconfirmed = tuple(index for index in sides if index in failed)
        for index in sides:
            lacking = max(confirm - run.count(line.at(index)), 1 - itself.count(index))
            again += [index] * (0 if index in tried else lacking)
        is_named = not again and not running
        wanted_commits = tuple(again[:free])
    else:
        wanted_commits = _members(wanted, line, belief, itself, failed)
    is_over = is_named or (is_spent and not again) or not (wanted_commits or running or free == 0)
    return Outlook(
        belief=belief,
        wanted=() if is_over else wanted_commits,
        is_over=is_over,
        is_unchanged=False,
        candidates=candidates,
        probability=probability,
        unconfirmed=unconfirmed,
    )


def _nothing_left() -> Outlook:
    """The answer where every commit is proven to give its parent's run."""
    belief = Belief(segments=(Segment(start=0, stop=1, mass=1.0),), error=0.0, separation=None)
    return Outlook(belief=belief, wanted=(), is_over=True, is_unchanged=True, candidates=range(0), probability=1.0)


def _members(
    wanted: Sequence[int], line: _Line, belief: Belief, itself: Sequence[int], failed: set[int]
) -> tuple[int, ...]:
    """Which commits to run for these positions.

    Of those that give the same run the first and the last one are of use beyond it: they are the culprit, or the parent
    of the next place, if the change is there. The one that has run less often, then the one that is likelier needed.
    """
    masses = {segment.start: segment.mass / (segment.stop - segment.start) for segment in belief.segments}
    chosen: list[int] = []
    for position in wanted:
        commits = line.commits(position)
        if position in (-1, len(line.places) - 1):
            chosen.append(commits[0] if position < 0 else commits[-1])
            continue
        times = Counter([*itself, *chosen])
        # A position that has no reading is one commit, or it would be known what its run is.
        able = [index for index in (commits[0], commits[-1]) if index not in failed]
        able = able or [index for index in commits if index in times]
        need = {commits[0]: masses.get(position, 0.0), commits[-1]: masses.get(position + 1, 0.0)}
        chosen.append(min(able, key=lambda index: (times[index], -need.get(index, 0.0))))
    return tuple(chosen)


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
