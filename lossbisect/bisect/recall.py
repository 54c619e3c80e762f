"""A bisection looked at from outside: its answer, or how far it is. Runs nothing and writes nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.commits import commit_range, github_name
from lossbisect.bisect.culprit import BisectResult, result_of
from lossbisect.bisect.driver import drive
from lossbisect.bisect.session import culprit_of
from lossbisect.bisect.state import Journal, find_bisect, work_root
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitRange
from lossbisect.errors import EndpointError, LossbisectError
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import RunRecord

__all__ = ["Unfinished", "recall_bisect"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """A bisection that goes on, or was stopped.

    Attributes:
        id: The bisect's name.
        directory: Its folder: journal and runs.
        plan: What was asked.
        commits: The range.
        steps: Finished runs, in order.
        repository: ``owner/name`` of Megatron-LM's remote on GitHub, or None.
        trouble: Why it can't go on as it is, one sentence; None: it only needs more runs.
    """

    id: str
    directory: Path
    plan: BisectPlan
    commits: CommitRange
    steps: tuple[BisectStep, ...]
    repository: str | None
    trouble: str | None


class _NotRunYetError(LossbisectError):
    """The search wants a run that the journal doesn't hold."""


class _Onlooker:
    """Reads what was run, and runs nothing."""

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
    ) -> RunRecord:
        """Refuse."""
        del out, on_line, repeat, should_stop
        raise _NotRunYetError(commit)

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a run."""
        from lossbisect.train import read_run

        return read_run(record)


def recall_bisect(
    bisect_id: str | None = None, *, repo: Path | None = None, work_dir: Path | None = None
) -> BisectResult | Unfinished:
    """The answer of a finished bisection, found again from its journal, or how far another one is.

    Args:
        bisect_id: Which one; None: the latest one of ``repo``.
        repo: The checkout; None: any.
        work_dir: Where it was started.

    Raises:
        StateError: There is no such bisect, or its journal or a run's files are gone or damaged.
        GitError: The checkout or its commits are gone.
    """
    root = work_root(work_dir)
    repo_root = None
    if repo is not None:
        with open_codebase(repo, allow_dirty=True) as code:
            repo_root = code.root
    journal = Journal.look(root, find_bisect(root, bisect_id, repo_root))
    with open_codebase(journal.plan.repo, allow_dirty=True) as code:
        commits = commit_range(code, journal.plan.good, journal.plan.bad)
        trouble = None
        try:
            finding = drive(commits, journal, _Onlooker(), on_event=lambda _: None)
        except _NotRunYetError:
            pass
        except EndpointError as error:
            trouble = str(error)
        else:
            return result_of(
                finding,
                bisect_id=journal.id,
                directory=journal.directory,
                plan=journal.plan,
                commits=commits,
                culprit=culprit_of(code, commits, finding),
                repository=github_name(code.mcore),
            )
        return Unfinished(
            id=journal.id,
            directory=journal.directory,
            plan=journal.plan,
            commits=commits,
            steps=tuple(journal.steps),
            repository=github_name(code.mcore),
            trouble=trouble,
        )
