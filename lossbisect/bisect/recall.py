"""A bisection looked at from outside: its answer, or how far it is. Runs nothing and writes nothing."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from lossbisect.bisect.chain import Chain
from lossbisect.bisect.codebase import open_codebase
from lossbisect.bisect.commits import github_name
from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.events import Runner
from lossbisect.bisect.names import searched_repo
from lossbisect.bisect.outset import stage_range
from lossbisect.bisect.state import Journal, find_bisect, work_root
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitRange
from lossbisect.bisect.vanished import commits_of
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
        without: str | None = None,
    ) -> RunRecord:
        """Refuse."""
        del out, on_line, repeat, should_stop, without
        raise _NotRunYetError(commit)

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a run."""
        from lossbisect.train import read_run

        return read_run(record)


class _Past:
    """The stages of a bisection that were begun.

    Attributes:
        latest: The journal of the last one of them.
    """

    jobs = 1

    def __init__(self, first: Journal) -> None:
        self.latest = first
        self._first = first

    def journal(self, number: int, plan: BisectPlan) -> AbstractContextManager[Journal]:
        """As `Workplace.journal`, of those that there are."""
        del plan
        if number > 1:
            name = f"{self._first.id}.{number}"
            if not self._first.directory.with_name(name).exists():
                raise _NotRunYetError(name)
            self.latest = Journal.look(self._first.directory.parents[1], name)
        return nullcontext(self.latest)

    def runner(self, plan: BisectPlan, journal: Journal) -> AbstractContextManager[Runner]:
        """As `Workplace.runner`."""
        del plan, journal
        return nullcontext(_Onlooker())

    def kept(self, plan: BisectPlan) -> Sequence[Collection[str]]:
        """As `Workplace.kept`: nothing is run."""
        del plan
        return ()


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
    first = Journal.look(root, find_bisect(root, bisect_id, repo_root).partition(".")[0])
    with open_codebase(first.plan.repo, allow_dirty=True) as checkout, commits_of(checkout, first.plan, root) as code:
        past = _Past(first)
        trouble = None
        try:
            return Chain(code, past, lambda _: None).answer(first.plan)
        except _NotRunYetError:
            pass
        except EndpointError as error:
            trouble = str(error)
        latest = past.latest
        return Unfinished(
            id=first.id,
            directory=latest.directory,
            plan=latest.plan,
            commits=stage_range(code, latest.plan),
            steps=tuple(latest.steps),
            repository=github_name(searched_repo(code, latest.plan.scope.searched)),
            trouble=trouble,
        )
