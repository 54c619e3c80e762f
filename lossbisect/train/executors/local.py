"""This machine: some runs at once, its GPUs split between them."""

from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.train.executors.base import OnLine, ShouldStop, Slots
from lossbisect.train.executors.gpus import gpu_variables, visible_gpus
from lossbisect.train.last_will import LastWill
from lossbisect.train.run import expect_run, run_recipe
from lossbisect.train.types import Lane, RunRecord, RunSpec
from lossbisect.train.warm import WarmParents

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs specs on this machine.

    On the CPU lane a run computes in one thread for each rank, so nothing needs to be split. On the CUDA lane each slot
    has its share of the GPUs that are visible.
    """

    def __init__(self, *, jobs: int = 1) -> None:
        """Start nothing yet.

        Args:
            jobs: How many runs go on at once, at least 1.
        """
        self._slots = Slots(jobs)
        self._warm = WarmParents()
        self._will = LastWill()

    @property
    def slots(self) -> int:
        """How many runs go on at once."""
        return self._slots.number

    def run(self, spec: RunSpec, out: Path, *, on_line: OnLine = None, should_stop: ShouldStop = None) -> RunRecord:
        """As `Executor.run`."""
        with self._slots.take() as slot:
            return run_recipe(
                spec, out, on_line=on_line, warm=self._warm, stop=self._slots.stop, will=self._will,
                should_stop=should_stop,
                variables=self._variables(spec, slot),
            )  # fmt: skip

    def expect(self, spec: RunSpec) -> None:
        """As `Executor.expect`: a warm parent imports meanwhile."""
        expect_run(spec, self._warm)

    def cancel(self) -> None:
        """As `Executor.cancel`."""
        self._slots.stop.set()

    def close(self) -> None:
        """As `Executor.close`."""
        self._slots.drain()
        self._warm.close()
        self._will.close()

    def _variables(self, spec: RunSpec, slot: int) -> dict[str, str]:
        if spec.lane is not Lane.CUDA or self.slots == 1:
            return {}
        from lossbisect.train.recipes import load_recipe

        gpus, ranks = visible_gpus(), load_recipe(spec.recipe).ranks
        if gpus and len(gpus) // self.slots < ranks:
            most = len(gpus) // ranks
            raise TrainerError(
                f"{spec.recipe} needs {ranks} GPUs for a run, and {len(gpus)} are visible: {self.slots} runs at once "
                f"are too many. Use --jobs {most}." if most else
                f"{spec.recipe} needs {ranks} GPUs, and only {len(gpus)} are visible. Take a smaller recipe."
            )  # fmt: skip
        return gpu_variables(gpus, slot=slot, slots=self.slots)
