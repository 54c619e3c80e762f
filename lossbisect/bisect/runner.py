"""Runs commits: trees of our own for each run, and then an executor."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lossbisect.bisect.by_hand import patches_for
from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.pairs import pair_of
from lossbisect.bisect.repository import ask
from lossbisect.bisect.trees import TreePool
from lossbisect.bisect.types import BisectPlan
from lossbisect.bisect.workshop import Change, Workshop
from lossbisect.errors import GitError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.curves import read_curves
from lossbisect.train.executors import Executor, open_executor
from lossbisect.train.types import Outcome, RunRecord, RunSpec, Sources

__all__ = ["CommitRunner"]


class CommitRunner:
    """Megatron-Core moves from commit to commit, Bridge stays where it is.

    `run` may be called from several threads; as many runs go on at once as the executor has slots.
    """

    def __init__(self, code: CodeBase, plan: BisectPlan, trees: Path, executor: Executor | None = None) -> None:
        """Use the user's repositories as sources, and ``trees`` as the folder for our own trees.

        Args:
            code: The user's checkout.
            plan: What each run is asked to do.
            trees: Folder for the trees; they are made when they are first needed.
            executor: What runs them, closed with the runner; None: the one that the plan names.
        """
        self._plan = plan
        self._mcore = code.mcore
        self._workshop = Workshop(code.mcore, trees / "made")
        # The trees take their files from the workshop: it has the user's commits, and those that are made of them.
        self._code = replace(code, mcore=self._workshop.repo)
        self._trees = TreePool(self._code, trees, bridge_commit=plan.bridge_commit, searched=plan.scope.searched)
        self._executor = executor or open_executor(plan.executor)

    @property
    def slots(self) -> int:
        """How many runs can go on at once."""
        return self._executor.slots

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,  # noqa: ARG002  # every run is a run
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """Check the commit out, with its patches, and train; one that can't be checked out is a void run.

        Raises:
            RunCancelledError: `cancel` was called.
        """
        self._executor.expect(self._spec(Sources(is_ours=True)))
        with self._trees.lend() as pair:
            try:
                made = self._made(commit, without)
            except GitError as error:
                return self._void(commit, out, str(error))
            try:
                sources = _standing_for(pair.checkout(made), commit)
            except GitError as error:
                return self._void(commit, out, f"it can't be checked out: {error}")
            return self._executor.run(self._spec(sources), out, on_line=on_line, should_stop=should_stop)

    def spec_of(self, commit: str, without: str | None = None) -> RunSpec:
        """What a run of the commit is asked to do, trees aside; without sources for one that can't be made."""
        try:
            made = self._made(commit, without)
            mcore, bridge = pair_of(
                self._code, made, bridge_commit=self._plan.bridge_commit, searched=self._plan.scope.searched
            )
        except GitError:
            return self._spec(Sources())
        return self._spec(_standing_for(Sources(mcore_commit=mcore, bridge_commit=bridge, is_ours=True), commit))

    def read(self, record: RunRecord) -> RunLog:
        """The run's curves, as it recorded them."""
        return read_curves(record)

    def cancel(self) -> None:
        """End the runs that go on, from any thread; their `run` raises `RunCancelledError`."""
        self._executor.cancel()

    def close(self) -> None:
        """End what still runs and delete the trees; runs and journal stay."""
        self._executor.close()
        self._trees.close()
        self._workshop.close()

    def _made(self, commit: str, without: str | None) -> str:
        """The commit that is checked out for one of the range, with what another one changed taken back."""
        bridge, plus, mcore = commit.rpartition("+")
        return f"{bridge}{plus}{self._on_top(mcore, without)}"

    def _on_top(self, commit: str, without: str | None) -> str:
        patches = patches_for(self._mcore, commit, self._plan.search.fixups)
        made = self._workshop.on_top(commit, patches)
        if without is None:
            return made
        parent = ask(self._mcore, "rev-parse", f"{without}^1")
        revert = Change(name=f"the revert of {without[:10]}", before=without, after=parent)
        reverted = self._workshop.on_top(commit, (*patches, revert))
        if reverted == made:
            raise GitError(f"{without[:10]} changes no file that a run reads, so there is nothing to take back")
        return reverted

    def _void(self, commit: str, out: Path, reason: str) -> RunRecord:
        out.mkdir(parents=True)
        return RunRecord(
            spec=self.spec_of(commit),
            out=out,
            argv=(),
            outcome=Outcome.VOID,
            reason=reason,
            exit_code=None,
            duration_s=0.0,
            provenance=None,
        )

    def _spec(self, sources: Sources) -> RunSpec:
        plan = self._plan
        return RunSpec(
            sources=sources,
            recipe=plan.recipe,
            trainer=plan.trainer,
            lane=plan.lane,
            python=plan.python,
            timeout_s=plan.timeout_s,
            executor=plan.executor.identity,
        )


def _standing_for(sources: Sources, commit: str) -> Sources:
    return sources if sources.mcore_commit == commit else replace(sources, stands_for=commit)
