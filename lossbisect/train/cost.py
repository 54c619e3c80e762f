"""What some runs will cost, before they run. Pure."""

from dataclasses import dataclass
from math import ceil
from statistics import median

from lossbisect.train.executors.options import ExecutorName
from lossbisect.train.types import Lane

__all__ = ["RunsCost", "cost_text", "duration_text", "gpus_of", "held_by"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsCost:
    """Runs that are about to take place.

    Attributes:
        runs: How many, about.
        jobs: How many at once.
        gpus: GPUs that a run holds; 0 on the CPU lane.
        where: The executor.
        timeout_s: What a run may take, seconds.
        earlier_s: What earlier finished runs of the same kind took, seconds; empty if there are none.
    """

    runs: int
    jobs: int
    gpus: int
    where: ExecutorName
    timeout_s: float
    earlier_s: tuple[float, ...] = ()

    @property
    def each_s(self) -> float | None:
        """What a run takes: the median of earlier ones; None if there are none."""
        return median(self.earlier_s) if self.earlier_s else None

    @property
    def total_s(self) -> float | None:
        """Wall time of all, without waiting in a queue; None if no run's time is known."""
        return None if self.each_s is None else ceil(self.runs / self.jobs) * self.each_s

    @property
    def hours(self) -> float:
        """GPU hours, on Slurm without GPUs node hours: as expected, or at most if no run's time is known."""
        held = held_by(self.gpus, self.where)
        return self.runs * (self.each_s if self.each_s is not None else self.timeout_s) * held / 3600

    @property
    def unit(self) -> str:
        """What `hours` counts."""
        return "GPU hours" if self.gpus else "node hours"


def gpus_of(lane: Lane, ranks: int) -> int:
    """GPUs that a run holds."""
    return ranks if lane is Lane.CUDA else 0


def held_by(gpus: int, where: ExecutorName) -> int:
    """What a run holds: GPUs, or without them a node on Slurm; 0: nothing that has to be asked for."""
    return gpus or (1 if where is ExecutorName.SLURM else 0)


def duration_text(seconds: float) -> str:
    """A time with two of its parts: 45 s, 12 min 5 s, 3 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def cost_text(cost: RunsCost) -> str:
    """Two lines: the time, and what is held for it."""
    at_once = f", {cost.jobs} at once" if cost.jobs > 1 else ""
    if cost.each_s is None or cost.total_s is None:
        time = f"unknown: no earlier run of this kind. At most {duration_text(cost.timeout_s)} for each run"
    else:
        known = f"{len(cost.earlier_s)} earlier run{'' if len(cost.earlier_s) == 1 else 's'}"
        time = f"about {duration_text(cost.total_s)} ({duration_text(cost.each_s)} for each run, from {known})"
    lines = [f"  runs           about {cost.runs}{at_once}", f"  expected time  {time}"]
    if cost.hours:
        about = "about" if cost.each_s is not None else "at most"
        lines.append(f"  {cost.unit:<13}  {about} {cost.hours:.2g}")
    else:
        lines.append("  GPU hours      none")
    return "\n".join(lines)
