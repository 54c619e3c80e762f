"""The stages of a bisection: what one has found says what the next one looks at.

Most bisections have one stage. A good end that has to be looked for, ends on two branches (`approach`), a merge,
commits that were left out, and a commit of Bridge that moves its pin (`descent`) each add some. Every stage has a
journal of its own, and what follows from its answer is worked out anew each time: going on after a stop needs no other
state.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Protocol

from lossbisect.bisect.approach import ends_of
from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.commits import changed_files, github_name, merged_commits
from lossbisect.bisect.culprit import Answer, BisectResult, Culprit, Finding, result_of
from lossbisect.bisect.descent import deeper
from lossbisect.bisect.desk import Desk
from lossbisect.bisect.driver import drive
from lossbisect.bisect.events import Event, EventKind, Runner
from lossbisect.bisect.harmless import looks_harmless
from lossbisect.bisect.hunts import runner_for
from lossbisect.bisect.names import searched_repo
from lossbisect.bisect.outset import stage_range
from lossbisect.bisect.passage import Passage
from lossbisect.bisect.scope import StageKind
from lossbisect.bisect.state import Journal
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitInfo, CommitRange
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import RunRecord

__all__ = ["Chain", "Workplace"]

_NOBODY = (StageKind.SIDES, StageKind.PAIR)


class Workplace(Protocol):
    """Where the stages of one bisection take place."""

    @property
    def jobs(self) -> int:
        """How many runs go on at once."""
        ...

    def journal(self, number: int, plan: BisectPlan) -> AbstractContextManager[Journal]:
        """The journal of a stage, numbered from 1: a new one, or the one that was begun.

        Raises:
            StateError: It was begun with another plan.
        """
        ...

    def runner(self, plan: BisectPlan, journal: Journal) -> AbstractContextManager[Runner]:
        """What runs the commits of a stage."""
        ...

    def kept(self, plan: BisectPlan) -> Sequence[Collection[str]]:
        """Full SHAs of commits of which the store has a run that will probably do, in groups, the best first."""
        ...


class Chain:
    """One bisection, stage by stage.

    Attributes:
        code: The user's checkout.
        passages: What the stages so far have shown.
        stage_id: Journal of the latest stage.
        read: The curves of a run of the latest stage, or of one before.
    """

    read: Callable[[RunRecord], RunLog]

    def __init__(self, code: CodeBase, workplace: Workplace, on_event: Callable[[Event], None]) -> None:
        self.code = code
        self.passages: list[Passage] = []
        self.stage_id = ""
        self._workplace = workplace
        self._on_event = on_event
        self._number = 0
        self._steps: dict[str, tuple[BisectStep, ...]] = {}

    def answer(self, plan: BisectPlan, notes: tuple[str, ...] = ()) -> BisectResult:
        """The answer of the bisection that begins with a plan; its ``id`` is that of the first stage.

        Args:
            plan: Of the first stage.
            notes: What a reader should know about the ends.

        Raises:
            EndpointError: An end can't be judged.
            StateError: A journal can't be written, or a run's files are gone.
        """
        result = self.bisect(plan)
        finding = replace(result.finding, warnings=(*notes, *result.finding.warnings))
        others = tuple(step for name, steps in self._steps.items() if name != result.id for step in steps)
        name = result.id.partition(".")[0]
        return replace(result, id=name, finding=finding, passages=tuple(self.passages), other_steps=others)

    def bisect(self, plan: BisectPlan) -> BisectResult:
        """From any first stage to the last word on it."""
        found = ends_of(self, plan)
        return found if isinstance(found, BisectResult) else deeper(self, self.search(found))

    def search(self, plan: BisectPlan) -> BisectResult:
        """The answer of one stage that has two ends."""

        def nothing(_commit: CommitInfo) -> None:
            """Where only a point between two ends is asked about, no commit is blamed."""

        def search(desk: Desk, journal: Journal, runner: Runner) -> BisectResult:
            repo = searched_repo(self.code, plan.scope.searched)
            finding = drive(
                desk.commits,
                journal,
                runner,
                on_event=self._on_event,
                jobs=self._workplace.jobs,
                harmless=nothing if plan.stage.kind in _NOBODY else partial(looks_harmless, repo),
                kept=[
                    [index for index, commit in enumerate(desk.commits.commits) if commit.sha in group]
                    for group in self._workplace.kept(plan)
                ],
            )
            changes = (
                replace(each, merged=merged_commits(repo, desk.commits.at(each.bad))) for each in finding.changes
            )
            finding = replace(finding, changes=tuple(changes))
            return result_of(
                finding,
                bisect_id=journal.id,
                directory=journal.directory,
                plan=plan,
                commits=desk.commits,
                culprit=self._culprit(plan, desk.commits, finding),
                repository=github_name(repo),
            )

        return self.stage(plan, search)

    def stage[T](self, plan: BisectPlan, work: Callable[[Desk, Journal, Runner], T]) -> T:
        """Do something at the desk of a stage of its own."""
        self._number += 1
        with self._workplace.journal(self._number, plan) as journal, self._workplace.runner(plan, journal) as runner:
            run = runner_for(runner, plan.search.regress)
            self.stage_id, self.read = journal.id, run.read
            journal.plan = plan  # the first one's holds what the user asked for, and this stage may ask for less
            commits = stage_range(self.code, plan)
            desk = Desk(commits, journal, run, self._on_event, self._workplace.jobs)
            try:
                return work(desk, journal, runner)
            finally:
                desk.stop()
                self._steps[journal.id] = tuple(journal.steps)

    def say(self, text: str) -> None:
        """Tell whoever watches."""
        self._on_event(Event(kind=EventKind.NOTE, text=text))

    def note(self, kind: StageKind, bisect_id: str, text: str, commit: CommitInfo | None = None) -> None:
        """Keep what a stage has shown for the report, and tell it."""
        self.passages.append(Passage(kind=kind, id=bisect_id, text=text, commit=commit))
        self.say(text)

    def _culprit(self, plan: BisectPlan, commits: CommitRange, finding: Finding) -> Culprit | None:
        """What git knows of the commit that was found; None where none was."""
        if finding.answer not in (Answer.FOUND, Answer.UNCONFIRMED) or plan.stage.kind is StageKind.PAIR:
            return None
        repo = searched_repo(self.code, plan.scope.searched)
        commit = commits.at(finding.bad)
        return Culprit(
            commit=commit,
            parent=commits.at(finding.good),
            files=changed_files(repo, commit),
            merged=merged_commits(repo, commit),
            harmless=looks_harmless(repo, commit),
        )
