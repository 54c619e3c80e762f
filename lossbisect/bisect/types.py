"""What a bisection is made of: commits, a range, verdicts, steps."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.scope import Scope, Stage
from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.types import Lane, RunRecord, TrainerName

__all__ = ["BisectPlan", "BisectStep", "CommitInfo", "CommitRange", "CommitVerdict", "FileChange", "Role"]


class CommitVerdict(StrEnum):
    """What a run says about its commit."""

    GOOD = "good"
    BAD = "bad"
    OTHER = "other"
    """Its curve is neither end's: another change than the one that is looked for. Never counted as bad."""
    SKIP = "skip"
    """Untestable: the run failed, was void, lost iterations, or lies within noise. Never counted as bad."""


class Role(StrEnum):
    """Why a commit is run."""

    GOOD_END = "good end"
    GOOD_AGAIN = "good end again"
    BAD_END = "bad end"
    BAD_AGAIN = "bad end again"
    WALK = "walk back"
    SEARCH = "search"
    PROBE = "probe between equal ends"
    CANARY = "good end, is it still running"
    PARENT_AGAIN = "parent again"
    CULPRIT_AGAIN = "culprit again"
    PARENT_CHECKED = "parent once more, the commit looks harmless"
    CULPRIT_CHECKED = "culprit once more, it looks harmless"
    REVERTED = "bad end without the culprit"
    WARM_UP = "warm-up, not counted"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """One file that a commit changed.

    Attributes:
        path: Path in the repository; of a renamed file the new one.
        status: ``added``, ``modified``, ``deleted``, ``renamed``, ``copied`` or ``type changed``.
    """

    path: str
    status: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitInfo:
    """One commit.

    Attributes:
        sha: Full SHA.
        parents: Full SHAs of its parents, first parent first.
        author: Author's name.
        email: Author's address.
        date: Author's date, ISO 8601 with zone. Says nothing about order: dates aren't monotonic.
        subject: First line of the message.
        pull_request: ``#123`` (GitHub) or ``!123`` (GitLab), or None if the message names none.
    """

    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    subject: str
    pull_request: str | None

    @property
    def short(self) -> str:
        """The SHA's first ten digits."""
        return self.sha[:10]

    @property
    def is_merge(self) -> bool:
        """It has more than one parent."""
        return len(self.parents) > 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitRange:
    """The commits to search.

    Attributes:
        good: The good end; not in ``commits``.
        commits: First-parent commits after ``good``, oldest first; the last one is the bad end. At least one.
        notes: What a reader of the result should know about the range, one sentence each.
        changes: The files that each of ``commits`` changed against the one before it, None for one where that isn't
            known; None altogether if commits aren't to be folded by it.
        skipped: Indices of ``commits`` that are never run, since the user said so.
    """

    good: CommitInfo
    commits: tuple[CommitInfo, ...]
    notes: tuple[str, ...] = ()
    changes: tuple[tuple[FileChange, ...] | None, ...] | None = None
    skipped: frozenset[int] = frozenset()

    @property
    def bad(self) -> CommitInfo:
        """The bad end."""
        return self.commits[-1]

    def at(self, index: int) -> CommitInfo:
        """The commit at an index of ``commits``; -1 is the good end."""
        return self.good if index == -1 else self.commits[index]


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectStep:
    """One run of a bisection and what it says.

    Attributes:
        role: Why the commit was run.
        index: Its place in `CommitRange.commits`; -1 is the good end.
        commit: Full SHA.
        record: The run.
        verdict: What it says about the commit.
        reason: One sentence.
        is_bad_curve: A bad commit's curve is the bad end's; None where that wasn't asked.
        span: First and last index of the commits around it that give the same run, since they change nothing that it
            read; None where that isn't known.
    """

    role: Role
    index: int
    commit: str
    record: RunRecord
    verdict: CommitVerdict
    reason: str
    is_bad_curve: bool | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BisectPlan:
    """What a bisection was asked for. A bisect that goes on is held to the same.

    Attributes:
        repo: Root of the user's checkout.
        good: Full SHA of the good end.
        bad: Full SHA of the bad end.
        bridge_commit: Full SHA that Bridge stays at; None for a Megatron-LM checkout, and where Bridge is searched.
        recipe: Name of a built-in recipe, or path of a recipe file.
        recipe_digest: SHA-256 of the recipe file; None for a built-in one.
        trainer: What runs it.
        lane: Where it runs.
        python: Interpreter of the trainer's process.
        timeout_s: Wall time after which a run is killed, seconds.
        metric: Column of the iterations table that is judged.
        tolerance: Relative difference up to which two curves are the same; None: measured, by two runs of the good end.
        executor: Where its runs take place. Of it only what can change a run's numbers must stay the same.
        search: What is looked for, and how sure it has to be.
        scope: Which commits are candidates.
        stage: What this stage of the bisect looks at.
    """

    repo: Path
    good: str
    bad: str
    bridge_commit: str | None
    recipe: str
    recipe_digest: str | None
    trainer: TrainerName
    lane: Lane
    python: Path
    timeout_s: float
    metric: str
    tolerance: float | None
    executor: ExecutorOptions = field(default_factory=ExecutorOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    scope: Scope = field(default_factory=Scope)
    stage: Stage = field(default_factory=Stage)
