"""Which commits a search tries first."""

from collections.abc import Sequence

from lossbisect.bisect.desk import Desk
from lossbisect.bisect.prune import touches
from lossbisect.bisect.types import Role
from lossbisect.train.reads import reads_of

__all__ = ["preferred_in"]


def preferred_in(desk: Desk) -> tuple[Sequence[int], ...]:
    """Groups of commits, those that are best tried first: a run that is kept costs nothing, then what may matter."""
    return (*desk.kept, _likely(desk))


def _likely(desk: Desk) -> Sequence[int]:
    """Commits that change something that an end's run read; none if that isn't known of both."""
    ends = [desk.journal.find(Role.GOOD_END, -1), desk.journal.find(Role.BAD_END, len(desk.commits.commits) - 1)]
    known = [reads for step in ends if step is not None and (reads := reads_of(step.record)) is not None]
    if desk.commits.changes is None or len(known) < len(ends):
        return ()
    return [
        index
        for index, changes in enumerate(desk.commits.changes)
        if changes is None or any(touches(changes, reads) for reads in known)
    ]
