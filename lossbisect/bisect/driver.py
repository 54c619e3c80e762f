"""The loop: run the ends, narrow the range, run the answer again.

Each stage is an agenda for the `Desk`: from the steps that are finished to the runs that are next. Going on after a
stop is the same loop: a run that the journal holds isn't run again.
"""

from collections.abc import Callable

from lossbisect.bisect.changes import ChangeHunt
from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Desk
from lossbisect.bisect.ends import open_case
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.exact import ExactHunt
from lossbisect.bisect.noisy_hunt import NoisyHunt
from lossbisect.bisect.search import SKIPS_ENOUGH
from lossbisect.bisect.state import Journal
from lossbisect.bisect.telling import plan_text
from lossbisect.bisect.types import CommitRange

__all__ = ["Answer", "Event", "EventKind", "Runner", "drive"]


def drive(
    commits: CommitRange,
    journal: Journal,
    runner: Runner,
    *,
    on_event: Callable[[Event], None],
    jobs: int = 1,
    skips_enough: int = SKIPS_ENOUGH,
) -> Finding:
    """Find where the curve changes between the good and the bad end.

    Args:
        commits: The range.
        journal: Where finished runs are kept. Those that it holds already aren't repeated.
        runner: What runs a commit.
        on_event: Called with each progress message, from several threads.
        jobs: How many runs go on at once, at least 1.
        skips_enough: Passed to `narrow`.

    Raises:
        EndpointError: An end doesn't finish, or the good end doesn't repeat itself well enough.
        StateError: The journal can't be written, or a run's files are gone.
    """
    desk = Desk(commits, journal, runner, on_event, jobs)
    desk.say(EventKind.NOTE, plan_text(len(commits.commits), jobs))
    try:
        case = open_case(desk)
        if journal.plan.search.find_all:
            return ChangeHunt(desk, case, skips_enough).finding()
        hunt = NoisyHunt(desk, case) if case.noise.source == "repeats" else ExactHunt(desk, case, skips_enough)
        return hunt.finding()
    finally:
        desk.stop()
