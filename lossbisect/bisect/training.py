"""What is trained at a commit, and by what its curve is judged."""

from dataclasses import dataclass
from pathlib import Path

from lossbisect.train.defaults import DEFAULT_TIMEOUT_S, run_spec
from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

__all__ = ["Training"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """One short training and its judge, the same at every commit.

    Attributes:
        recipe: What to train; None: the built-in recipe of the lane.
        trainer: What trains it; None: that of the checkout.
        lane: Where.
        python: Interpreter with the trainer's requirements; None: this one.
        timeout_s: Wall time after which a run is killed and its commit skipped, seconds.
        metric: Column that is judged.
        tolerance: Relative difference up to which two curves are the same; None: what the noise explains.
    """

    recipe: str | None = None
    trainer: TrainerName | None = None
    lane: Lane = Lane.CPU
    python: Path | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    metric: str = "lm_loss"
    tolerance: float | None = None

    def run_of(self, sources: Sources, executor: ExecutorOptions | None = None) -> RunSpec:
        """The run of some code, with what wasn't said filled in."""
        return run_spec(
            sources, trainer=self.trainer, recipe=self.recipe, lane=self.lane, python=self.python,
            timeout_s=self.timeout_s, executor=executor,
        )  # fmt: skip
