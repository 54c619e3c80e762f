"""Which earlier curve a commit is held against. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lossbisect.triage.tip import last_value
from lossbisect.triage.types import Entry, Kind, Point

__all__ = ["Level", "is_accepted", "level_at"]

_SOUND = frozenset({Kind.OK, Kind.ENVIRONMENT, Kind.ACKNOWLEDGED})
_MOVED = frozenset({Kind.REGRESSION, Kind.IMPROVEMENT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """What is known before a commit is run.

    Attributes:
        accepted: Nearest commit whose curve counts as right; None if there is none.
        alarm: A nearer commit whose curve was reported and not acknowledged; None if there is none.
        latest: Nearest entry of any kind after ``accepted``; None if there is none.
        noise_rel: Largest difference between repeats that was seen since ``accepted``.
        before: Last values of the runs at the level of ``accepted``, the nearest first: back to where it was set.
    """

    accepted: Entry | None
    alarm: Entry | None
    latest: Entry | None
    noise_rel: float
    before: tuple[float, ...] = ()

    @property
    def base(self) -> Entry | None:
        """What a new movement is measured from: the alarm if there is one, since that is known already."""
        return self.alarm or self.accepted


def is_accepted(entry: Entry, acknowledged: Collection[str]) -> bool:
    """Whether an entry's curve counts as right: it was found so, or somebody said so later."""
    if entry.kind in _MOVED:
        return any(commit in acknowledged for commit in (*entry.culprits, entry.point.mcore))
    return entry.kind in _SOUND and bool(entry.curve)


def level_at(entries: Sequence[Entry], distances: Mapping[Point, int], acknowledged: Collection[str]) -> Level:
    """What is known of a commit's history.

    Args:
        entries: Of one series, the oldest first.
        distances: How many commits each point lies before the commit in question, 0 for itself; points that aren't
            among its ancestors are missing.
        acknowledged: SHAs of the commits that were meant to move the loss.
    """
    ranked = sorted(
        ((distances[entry.point], -number, entry) for number, entry in enumerate(entries) if entry.point in distances),
        key=lambda each: each[:2],
    )
    accepted = next((each for each in ranked if is_accepted(each[2], acknowledged)), None)
    nearer = [each for each in ranked if accepted is None or each[:2] < accepted[:2]]
    alarm = next((entry for _, _, entry in nearer if entry.kind in _MOVED and entry.curve), None)
    since = [entry for _, _, entry in nearer] + ([accepted[2]] if accepted else [])
    older = [entry for rank, number, entry in ranked if accepted and (rank, number) >= accepted[:2] and rank > 0]
    return Level(
        before=tuple(last_value(entry.curve) for entry in _one_level(older)),
        accepted=accepted[2] if accepted else None,
        alarm=alarm,
        latest=nearer[0][2] if nearer else None,
        noise_rel=max((entry.noise_rel for entry in since), default=0.0),
    )


def _one_level(older: Sequence[Entry]) -> Iterator[Entry]:
    """The entries back to the one that set the level, the nearest first; what was in doubt belongs to its scatter."""
    for entry in older:
        if entry.kind in _MOVED:
            return
        if entry.curve:
            yield entry
        if entry.kind in (Kind.ENVIRONMENT, Kind.ACKNOWLEDGED):
            return
