"""What a triage asks, and what it says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from lossbisect.bisect.types import CommitInfo
from lossbisect.train.types import Lane, TrainerName

__all__ = [
    "Acknowledgement",
    "Axis",
    "Blame",
    "Case",
    "CaseReport",
    "Curve",
    "Entry",
    "Kind",
    "Point",
    "Series",
    "TriageReport",
]

type Curve = Mapping[int, float]
"""Values of the metric by iteration, nats/token for a loss; NaN and infinity are values."""


class Kind(StrEnum):
    """What became of a training at a commit."""

    OK = "ok"
    """The curve that was right before, within the noise that is known."""
    REGRESSION = "regression"
    """Another curve, and the reference commit gives the old one in today's environment."""
    IMPROVEMENT = "improvement"
    """As a regression, but the loss is lower throughout the second half."""
    FLAKY = "flaky"
    """The commit doesn't repeat itself, and its runs lie no further from the reference than from each other."""
    ENVIRONMENT = "environment"
    """The numbers moved, and the reference commit's moved alike: no commit did it."""
    BROKEN = "broken"
    """It doesn't run, by its own fault. No statement about the loss."""
    ACKNOWLEDGED = "changed on purpose"
    """Another curve, and somebody said that it is meant."""
    UNDECIDED = "undecided"
    """Nothing can be said: the infrastructure failed, or the difference may be noise and may not."""


class Axis(StrEnum):
    """What differs between two set-ups."""

    ENVIRONMENT = "environment"
    BRIDGE = "Megatron Bridge"
    MCORE = "Megatron-Core"
    BOTH = "Megatron Bridge and Megatron-Core together"


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A commit to train.

    Attributes:
        mcore: Full SHA of Megatron-Core.
        bridge: Full SHA of Bridge; None in a Megatron-LM checkout.
    """

    mcore: str
    bridge: str | None = None

    @property
    def short(self) -> str:
        """The first ten digits of each SHA."""
        return self.mcore[:10] + (f" with Bridge {self.bridge[:10]}" if self.bridge else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One training of a suite.

    Attributes:
        recipe: Name of a built-in recipe, or path of a recipe file.
        lane: Where.
        trainer: What trains it; None: that of the checkout.
        repeats: Runs of a commit whose curve has moved, at least 2.
        tolerance: Relative difference up to which two curves are the same, whatever their repeats show.
        metric: Column that is judged.
        owners: Who is told.
    """

    recipe: str
    lane: Lane = Lane.CPU
    trainer: TrainerName | None = None
    repeats: int = 2
    tolerance: float = 0.0
    metric: str = "lm_loss"
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """What must be the same for two curves to be comparable over commits.

    Attributes:
        recipe: Its name, for a person.
        recipe_digest: Digest of what it says; an edited recipe starts a series of its own.
        trainer: What ran it.
        lane: Where.
        machine: Model of the GPUs; ``cpu`` on the lane cpu.
        metric: Column.
    """

    recipe: str
    recipe_digest: str
    trainer: TrainerName
    lane: Lane
    machine: str
    metric: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line of the history: a commit's curve, and what was said of it.

    Attributes:
        at: When, UTC.
        point: The commit.
        kind: What was said.
        reason: One sentence.
        noise_rel: Largest relative difference of two runs of one commit that is known; 0: none was seen.
        curve: Its curve; empty if it has none.
        culprits: Full SHAs of the commits that moved it there; for a moved curve only.
        environment: Digest of Python, packages, driver and variables.
    """

    at: datetime
    point: Point
    kind: Kind
    reason: str
    noise_rel: float
    curve: Curve
    culprits: tuple[str, ...] = ()
    environment: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acknowledgement:
    """Somebody says that a commit was meant to move the loss.

    Attributes:
        commit: Full SHA.
        reason: Why.
        by: Who, as git's configuration has it.
        at: When, UTC.
    """

    commit: str
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Blame:
    """Whose commit moved the loss.

    Attributes:
        axis: Which of the two repositories.
        commits: Candidates, oldest first; one if it is known.
        is_confirmed: One commit, and it and the one before it repeated their curves.
        reason: One sentence.
        bisect_id: The bisect that found it; None if none was needed.
    """

    axis: Axis
    commits: tuple[CommitInfo, ...]
    is_confirmed: bool
    reason: str
    bisect_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseReport:
    """What is said of one training at one commit.

    Attributes:
        case: Which.
        trainer: What trained it.
        point: The commit.
        reference: The commit that it was compared with; None if there is none yet.
        kind: What became of it.
        reason: One sentence.
        is_news: It was not said before.
        runs: Trainings that it took, those of a bisect aside.
        blame: Whose commit; for a moved curve only.
        acknowledgement: Of a change on purpose.
        notes: What a reader should know besides, one sentence each.
        curve: Its curve; empty if it has none.
        reference_curve: The curve that it was judged by: the reference commit's of today, or the recorded one where no
            second run was needed; empty if there is none.
        noise_rel: Largest relative difference of two runs of one commit that is known.
    """

    case: Case
    trainer: TrainerName
    point: Point
    reference: Point | None
    kind: Kind
    reason: str
    is_news: bool
    runs: int
    blame: Blame | None = None
    acknowledgement: Acknowledgement | None = None
    notes: tuple[str, ...] = ()
    curve: Curve = field(default_factory=dict)
    reference_curve: Curve = field(default_factory=dict)
    noise_rel: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TriageReport:
    """What is said of a commit.

    Attributes:
        commit: The commit of Megatron-Core.
        point: The same, with Bridge's.
        repository: ``owner/name`` of Megatron-LM's remote on GitHub, or None.
        cases: One for each training of the suite.
        bridge: The commit of Bridge; None in a Megatron-LM checkout.
        bridge_repository: ``owner/name`` of Bridge's remote on GitHub, or None.
        is_bridges: The point is Bridge's commit with the Megatron-Core that it pins: Bridge's commit is what's new.
        at: When it was said, UTC.
    """

    commit: CommitInfo
    point: Point
    repository: str | None
    cases: tuple[CaseReport, ...]
    bridge: CommitInfo | None = None
    bridge_repository: str | None = None
    is_bridges: bool = False
    at: datetime | None = None

    @property
    def newest(self) -> CommitInfo:
        """The commit that is judged: Bridge's where the point is of Bridge's own history, else Megatron-Core's."""
        return self.bridge if self.is_bridges and self.bridge is not None else self.commit

    @property
    def exit_code(self) -> int:
        """1 if a loss moved that nobody acknowledged, else 3 if something can't be said, else 0."""
        kinds = {case.kind for case in self.cases}
        if kinds & {Kind.REGRESSION, Kind.IMPROVEMENT}:
            return 1
        return 3 if kinds & {Kind.FLAKY, Kind.BROKEN, Kind.UNDECIDED} else 0

    @property
    def is_news(self) -> bool:
        """Something is wrong that was not said before."""
        return any(case.is_news for case in self.cases)
