"""Where a bisection's stages take place: journals in the work directory, runs by the executor or from the store."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.events import Runner
from lossbisect.bisect.follow_bridge import FollowingRunner
from lossbisect.bisect.runner import CommitRunner
from lossbisect.bisect.scope import Searched
from lossbisect.bisect.state import Journal
from lossbisect.bisect.types import BisectPlan, BisectStep, Role
from lossbisect.errors import StateError
from lossbisect.store.runner import StoredRunner, StoredRuns, StoreUse
from lossbisect.train import cache_directory
from lossbisect.train.executors import ExecutorOptions, open_executor
from lossbisect.train.types import Outcome

__all__ = ["WorkDirectory"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkDirectory:
    """The work directory, the executor and the run store as the workplace of a bisection's stages.

    Attributes:
        code: The user's checkout.
        first: The first stage's journal, open. Another stage's has that one's id with a number behind it.
        executor: Where runs take place.
        store: How the run store is used.
        given: What runs a commit instead of all that; None: nothing does.
        is_retrying: Runs that failed are to be tried again.
        runners: Those of the stages so far: a stage with the same set-up goes on in trees that are there, warm.
    """

    code: CodeBase
    first: Journal
    executor: ExecutorOptions
    store: StoreUse
    given: Runner | None
    is_retrying: bool = False
    runners: dict[tuple[str | None, Searched], CommitRunner] = field(default_factory=dict)

    @property
    def jobs(self) -> int:
        """As `Workplace.jobs`."""
        return self.executor.slots

    def journal(self, number: int, plan: BisectPlan) -> AbstractContextManager[Journal]:
        """As `Workplace.journal`."""
        if number == 1:
            self._retry(self.first)
            return nullcontext(self.first)
        folder = self.first.directory
        name = f"{self.first.id}.{number}"
        if not _is_begun(folder.with_name(name) / "journal.ndjson"):
            return Journal.create(folder.parents[1], plan, name)
        journal = Journal.open(folder.parents[1], name)
        if journal.plan != plan:
            journal.close()
            raise StateError(
                f"{journal.directory}: this stage was begun with other commits than now follow from the stage before. "
                "Move it away, or start a new bisect."
            )
        self._retry(journal)
        return journal

    @contextmanager
    def runner(self, plan: BisectPlan, journal: Journal) -> Iterator[Runner]:
        """As `Workplace.runner`."""
        if self.given is not None:
            yield self.given
            return
        own = self._runner(plan)
        stored = StoredRunner(own, self._stored_runs(journal), own.spec_of)
        follows = plan.search.bridge_follows
        yield FollowingRunner(stored, self.code, plan.bridge_commit) if follows else stored

    def kept(self, plan: BisectPlan) -> Sequence[Collection[str]]:
        """As `Workplace.kept`."""
        if self.given is not None or plan.scope.searched is not Searched.MCORE:
            return ()
        return StoredRuns(cache_directory(), self.store).commits(self._runner(plan).spec_of(plan.good))

    def _runner(self, plan: BisectPlan) -> CommitRunner:
        """The runner of a stage: a new one, or that of an earlier stage that differs in nothing that a run sees."""
        kind = (plan.bridge_commit, plan.scope.searched)
        if kind not in self.runners:
            folder = self.first.directory / "trees" / f"set-up-{len(self.runners) + 1}"
            self.runners[kind] = CommitRunner(self.code, plan, folder, open_executor(self.executor))
        return self.runners[kind]

    def close(self) -> None:
        """End what still runs, and delete the trees."""
        for each in self.runners.values():
            each.close()
        for folder in (self.first.directory / "trees").glob("set-up-*"):
            with suppress(OSError):
                folder.rmdir()

    def _stored_runs(self, journal: Journal) -> StoredRuns:
        stored = [step.record.stored_as for step in journal.steps]
        given = [name for name in stored if name is not None]
        return StoredRuns(
            cache_directory(), self.store, with_failures=not self.is_retrying, has_run=None in stored, given=given
        )

    def _retry(self, journal: Journal) -> None:
        if self.is_retrying:
            journal.forget([step for step in journal.steps if _has_failed(step)], "to be tried again")


def _is_begun(journal: Path) -> bool:
    """Whether the plan is in it; a kill before that leaves an empty file, or none."""
    return journal.exists() and b"\n" in journal.read_bytes()


def _has_failed(step: BisectStep) -> bool:
    return step.role in (Role.SEARCH, Role.WALK) and step.record.outcome is not Outcome.FINISHED
