"""What the run store keeps, and by what it finds it again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from lossbisect.train.types import Lane, RunRecord, TrainerName

__all__ = ["Environment", "NotStored", "RunFilter", "RunKey", "StoredRun", "digest_of"]


def digest_of(value: object) -> str:
    """SHA-256 of a value's JSON text, keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=False).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What of a machine and an interpreter can change a run's numbers, as far as it's known before the run.

    Attributes:
        python: Version of Python.
        packages: Versions of the installed packages that can change numbers, by name.
        processor: The CPU's model and abilities; None on the lane cuda.
        driver: Version of NVIDIA's driver; None on the lane cpu.
        gpu: Model of the GPUs; None on the lane cpu.
        image: The container's image, as far as anything tells it.
        variables: Environment variables that can change numbers, those that lossbisect sets included.
        code: Digest of lossbisect's own code that runs, or shapes, a training.
    """

    python: str
    packages: Mapping[str, str]
    processor: str | None
    driver: str | None
    gpu: str | None
    image: str | None
    variables: Mapping[str, str]
    code: str

    @property
    def digest(self) -> str:
        """Equal for equal environments."""
        return digest_of(asdict(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunKey:
    """Everything that determines a run's result.

    Attributes:
        mcore_commit: Full SHA of Megatron-Core.
        bridge_commit: Full SHA of Bridge; None: no Bridge checkout took part.
        recipe: Every field of the resolved recipe, by name; its name and description aside.
        trainer: What ran it.
        lane: Where.
        settings: What else the run was asked for, such as environment variables; secrets are masked.
        settings_digest: Digest of the same with nothing masked.
        environment: Machine and interpreter.
    """

    mcore_commit: str
    bridge_commit: str | None
    recipe: Mapping[str, object]
    trainer: TrainerName
    lane: Lane
    settings: Mapping[str, object]
    settings_digest: str
    environment: Environment

    @property
    def recipe_digest(self) -> str:
        """Equal for recipes that ask for the same training, whatever their names."""
        return digest_of(self.recipe)

    @property
    def digest(self) -> str:
        """Equal for runs that must have the same result, apart from noise."""
        parts = (
            self.mcore_commit, self.bridge_commit, self.recipe_digest, self.trainer.value, self.lane.value,
            self.settings_digest, self.environment.digest,
        )  # fmt: skip
        return digest_of(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class NotStored:
    """A run that the store neither has nor takes.

    Attributes:
        reason: Why, in a clause.
    """

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """One run in the store.

    Attributes:
        id: Its name, and that of its folder.
        key: Digest of its `RunKey`.
        repetition: How many runs of the same key were stored before it.
        added_at: When it was stored, UTC.
        recipe: Name that the recipe had.
        recipe_digest: Digest of what the recipe said.
        environment: Machine and interpreter.
        iterations: Number of iterations that recorded a loss.
        last_loss: The last one's loss, nats/token; None if there is none or it isn't finite.
        size_bytes: Size of its files.
        is_stale: A later run showed that the environment has changed without a trace: it is kept, but not used.
        record: The run; its folder is that in the store.
    """

    id: str
    key: str
    repetition: int
    added_at: datetime
    recipe: str
    recipe_digest: str
    environment: Environment
    iterations: int
    last_loss: float | None
    size_bytes: int
    is_stale: bool
    record: RunRecord

    @property
    def mcore_commit(self) -> str:
        """Full SHA of Megatron-Core."""
        commit = self.record.spec.sources.mcore_commit
        assert commit is not None, "a run without a commit is never stored"
        return commit


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFilter:
    """Which runs to list; None: whatever.

    Attributes:
        commit: Beginning of the SHA of Megatron-Core.
        recipe: Name of the recipe.
        trainer: What ran it.
        lane: Where.
        since: Stored at this time or later.
    """

    commit: str | None = None
    recipe: str | None = None
    trainer: TrainerName | None = None
    lane: Lane | None = None
    since: datetime | None = None
