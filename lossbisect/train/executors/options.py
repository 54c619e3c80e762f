"""What the user says about where runs take place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from lossbisect.cores import usable_cores
from lossbisect.train.types import Lane

__all__ = ["DEFAULT_QUEUE_TIMEOUT_S", "MOST_USUAL_JOBS", "ExecutorName", "ExecutorOptions"]

DEFAULT_QUEUE_TIMEOUT_S = 86_400.0
MOST_USUAL_JOBS = 4


class ExecutorName(StrEnum):
    """Where runs take place."""

    LOCAL = "local"
    """This machine."""
    SLURM = "slurm"
    """A job each."""
    COMMAND = "command"
    """A command of the user's, started here; it may go wherever it likes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorOptions:
    """Where runs take place.

    Attributes:
        name: The executor.
        jobs: How many runs go on at once; None: nobody said it, see `at_usual_jobs`.
        retries: How often a run that failed by its infrastructure is tried again.
        command: With ``command``: words with placeholders.
        folder: With ``command``: the folder that it is started in.
        sbatch_template: With ``slurm``: the user's own batch script, with placeholders; None: submitit writes one.
        sbatch_options: With ``slurm``: options of sbatch without their dashes, such as ``partition``.
        queue_timeout_s: With ``slurm``: how long a job may wait for its start, seconds.
    """

    name: ExecutorName = ExecutorName.LOCAL
    jobs: int | None = None
    retries: int = 2
    command: str | None = None
    folder: Path | None = None
    sbatch_template: Path | None = None
    sbatch_options: Mapping[str, str] = field(default_factory=dict)
    queue_timeout_s: float = DEFAULT_QUEUE_TIMEOUT_S

    def to_json(self) -> dict[str, object]:
        """Plain values; `from_json` gives the same options back."""
        return {key: str(value) if isinstance(value, Path | StrEnum) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, row: Mapping[str, object]) -> "ExecutorOptions":
        """The options that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: The row isn't one.
        """
        values = dict(row)
        values["name"] = ExecutorName(str(values["name"]))
        for key in ("folder", "sbatch_template"):
            values[key] = None if values[key] is None else Path(str(values[key]))
        return cls(**values)  # type: ignore[arg-type]

    @property
    def slots(self) -> int:
        """How many runs go on at once, one if nobody said it."""
        return self.jobs or 1

    def at_usual_jobs(self, lane: Lane, ranks: int) -> "ExecutorOptions":
        """With as many runs at once as suit a lane, if nobody said how many.

        On this machine's CPU lane a rank computes in one thread, so there is a run for every `ranks` cores, up to
        `MOST_USUAL_JOBS`; more hold memory and rarely save a round. Elsewhere it is one.
        """
        if self.jobs is not None:
            return self
        is_ours = lane is Lane.CPU and self.name is ExecutorName.LOCAL
        return replace(self, jobs=max(1, min(MOST_USUAL_JOBS, usable_cores() // ranks)) if is_ours else 1)

    @property
    def identity(self) -> str:
        """What of it can change a run's numbers, for `RunSpec.executor`; how many at once and which queue can't."""
        if self.name is ExecutorName.COMMAND:
            return f"{self.name}: {self.command} in {self.folder or Path.cwd()}"
        return self.name.value
