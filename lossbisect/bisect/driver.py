"""The loop: run the ends, narrow the range, run the answer again.

Each stage is an agenda for the `Desk`: from the steps that are finished to the runs that are next. Going on after a
stop is the same loop: a run that the journal holds isn't run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from lossbisect.bisect.changes import ChangeHunt
from lossbisect.bisect.culprit import Answer, Finding
from lossbisect.bisect.desk import Desk
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.hunts import hunt_for, runner_for
from lossbisect.bisect.known import run_of
from lossbisect.bisect.search import SKIPS_ENOUGH
from lossbisect.bisect.state import Journal
from lossbisect.bisect.telling import plan_text
from lossbisect.bisect.types import CommitInfo, CommitRange
from lossbisect.bisect.verify import may_revert, run_without

__all__ = ["Answer", "Event", "EventKind", "Runner", "drive"]


def drive(
    commits: CommitRange,
    journal: Journal,
    runner: Runner,
    *,
    on_event: Callable[[Event], None],
    jobs: int = 1,
    skips_enough: int = SKIPS_ENOUGH,
    harmless: Callable[[CommitInfo], str | None] = lambda _: None,
    kept: Sequence[Sequence[int]] = (),
) -> Finding:
    """Find where the curve changes between the good and the bad end.

    Args:
        commits: The range.
        journal: Where finished runs are kept. Those that it holds already aren't repeated.
        runner: What runs a commit.
        on_event: Called with each progress message, from several threads.
        jobs: How many runs go on at once, at least 1.
        skips_enough: Passed to `narrow`.
        harmless: What a commit changed, if that can't have moved a loss by its looks; it is run once more then.
        kept: Indices of commits of which a run is in the store, so that it costs nothing: groups as `Desk` has them.

    Raises:
        EndpointError: An end doesn't finish, or the good end doesn't repeat itself well enough.
        StateError: The journal can't be written, or a run's files are gone.
    """
    desk = Desk(commits, journal, runner_for(runner, journal.plan.search.regress), on_event, jobs, kept)
    regress, reverts = journal.plan.search.regress, may_revert(journal.plan)
    desk.say(EventKind.NOTE, plan_text(len(commits.commits), jobs, revert=reverts, regress=regress))
    if journal.plan.search.bridge_follows:
        held = str(journal.plan.bridge_commit)[:10]
        desk.say(EventKind.NOTE, f"What Bridge {held} can't load runs again with Bridge's commit of the day.")
    try:
        hunt = hunt_for(desk, skips_enough, harmless)
        finding = _of_one_bridge(desk, hunt.finding())
        if isinstance(hunt, ChangeHunt) or finding.answer is not Answer.FOUND or not reverts:
            return finding
        revert = run_without(desk, finding, hunt.judge_without(finding))
        return replace(finding, revert=revert, steps=tuple(desk.steps))
    finally:
        desk.stop()


def _of_one_bridge(desk: Desk, finding: Finding) -> Finding:
    """The finding, unconfirmed where its two sides ran with different Bridges: the change may be Bridge's."""
    if finding.answer is not Answer.FOUND or not desk.journal.plan.search.bridge_follows:
        return finding
    steps = [run_of(desk.steps, index) for index in (finding.good, finding.bad)]
    bridges = [step.record.spec.sources.bridge_commit for step in steps if step is not None]
    if bridges[0] == bridges[1]:
        return finding
    names = ", the commit with ".join(str(bridge)[:10] for bridge in bridges)
    reason = f"{finding.reason} But the change may be Bridge's: its parent ran with Bridge {names}."
    return replace(finding, answer=Answer.UNCONFIRMED, reason=reason)
