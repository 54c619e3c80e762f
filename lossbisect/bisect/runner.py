"""Runs commits: trees of our own for each run, and then an executor."""

from collections.abc import Callable
from pathlib import Path

from lossbisect.bisect.codebase import CodeBase
from lossbisect.bisect.trees import TreePool
from lossbisect.bisect.types import BisectPlan
from lossbisect.errors import GitError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train import read_run
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
        self._trees = TreePool(code, trees, bridge_commit=plan.bridge_commit)
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
    ) -> RunRecord:
        """Check the commit out and train; a commit that can't be checked out is a void run.

        Raises:
            RunCancelledError: `cancel` was called.
        """
        with self._trees.lend() as pair:
            try:
                sources = pair.checkout(commit)
            except GitError as error:
                out.mkdir(parents=True)
                return RunRecord(
                    spec=self._spec(pair.sources(commit)),
                    out=out,
                    argv=(),
                    outcome=Outcome.VOID,
                    reason=f"it can't be checked out: {error}",
                    exit_code=None,
                    duration_s=0.0,
                    provenance=None,
                )
            return self._executor.run(self._spec(sources), out, on_line=on_line, should_stop=should_stop)

    def spec_of(self, commit: str) -> RunSpec:
        """What a run of the commit is asked to do, trees aside."""
        return self._spec(Sources(mcore_commit=commit, bridge_commit=self._plan.bridge_commit, is_ours=True))

    def read(self, record: RunRecord) -> RunLog:
        """The run's curves, as it recorded them."""
        return read_run(record)

    def cancel(self) -> None:
        """End the runs that go on, from any thread; their `run` raises `RunCancelledError`."""
        self._executor.cancel()

    def close(self) -> None:
        """End what still runs and delete the trees; runs and journal stay."""
        self._executor.close()
        self._trees.close()

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
