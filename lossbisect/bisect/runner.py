"""Runs commits on this machine: our own tree of each repository, then the trainer."""

from collections.abc import Callable
from pathlib import Path

from lossbisect.bisect.commits import CodeBase
from lossbisect.bisect.types import BisectPlan
from lossbisect.bisect.worktree import BRIDGE_UNREAD, MCORE_UNREAD, WorkTree
from lossbisect.errors import GitError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train import read_run, run_recipe
from lossbisect.train.types import Outcome, RunRecord, RunSpec, Sources
from lossbisect.train.warm import WarmParents

__all__ = ["LocalRunner"]


class LocalRunner:
    """Megatron-Core moves from commit to commit, Bridge stays where it is. Trees are made on the first run."""

    def __init__(self, code: CodeBase, plan: BisectPlan, trees: Path) -> None:
        """Use the user's repositories as sources, and ``trees`` as the folder for our own trees."""
        self._code = code
        self._plan = plan
        self._folder = trees
        self._mcore: WorkTree | None = None
        self._bridge: WorkTree | None = None
        self._warm = WarmParents()

    def run(self, commit: str, out: Path, on_line: Callable[[str], None]) -> RunRecord:
        """Check the commit out and train; a commit that can't be checked out is a void run."""
        spec = self._spec(commit)
        try:
            self._check_out(commit)
        except GitError as error:
            out.mkdir(parents=True)
            return RunRecord(
                spec=spec,
                out=out,
                argv=(),
                outcome=Outcome.VOID,
                reason=f"it can't be checked out: {error}",
                exit_code=None,
                duration_s=0.0,
                provenance=None,
            )
        return run_recipe(spec, out, on_line=on_line, warm=self._warm)

    def read(self, record: RunRecord) -> RunLog:
        """The run's curves, as it recorded them."""
        return read_run(record)

    def close(self) -> None:
        """Delete the trees; runs and journal stay."""
        self._warm.close()
        for tree in (self._mcore, self._bridge):
            if tree is not None:
                tree.remove()

    def _spec(self, commit: str) -> RunSpec:
        plan = self._plan
        return RunSpec(
            sources=Sources(
                mcore=self._folder / "mcore",
                bridge=self._folder / "bridge" if plan.bridge_commit else None,
                mcore_commit=commit,
                bridge_commit=plan.bridge_commit,
                is_ours=True,
            ),
            recipe=plan.recipe,
            trainer=plan.trainer,
            lane=plan.lane,
            python=plan.python,
            timeout_s=plan.timeout_s,
        )

    def _check_out(self, commit: str) -> None:
        self._mcore = self._mcore or WorkTree(self._code.mcore, self._folder / "mcore", leave_out=MCORE_UNREAD)
        self._mcore.checkout(commit)
        if self._plan.bridge_commit and self._code.bridge is not None:
            self._bridge = self._bridge or WorkTree(self._code.bridge, self._folder / "bridge", leave_out=BRIDGE_UNREAD)
            self._bridge.checkout(self._plan.bridge_commit)
