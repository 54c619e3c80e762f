"""What is asked of a training run, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lossbisect.cause import Cause

__all__ = ["Lane", "Outcome", "Provenance", "RunRecord", "RunSpec", "Sources", "TrainerName"]


class TrainerName(StrEnum):
    """What runs the recipe."""

    BRIDGE = "bridge"
    MLM = "mlm"
    CORE = "core"
    """Our own smallest loop over ``megatron.core``."""


class Lane(StrEnum):
    """Where the recipe runs."""

    CPU = "cpu"
    """Emulated CUDA: no GPU needed, and bit for bit repeatable."""
    CUDA = "cuda"


class Outcome(StrEnum):
    """How a run ended. Only a finished run has curves that may be judged."""

    FINISHED = "finished"
    FAILED = "failed"
    """The trainer exited with an error."""
    TIMED_OUT = "timed out"
    CUT = "cut short"
    """It was ended on purpose before its time: its verdict was sure, or no longer needed."""
    VOID = "void"
    """It ran, but not the code that was asked for, or without saying which."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """Where the trainer's code is taken from.

    Attributes:
        mcore: Root of a Megatron-LM tree (the folder that holds ``megatron/core``), or None for the installed package.
        bridge: Root of a Bridge tree (the folder that holds ``src/megatron/bridge``), or None for the installed
            package.
        mcore_commit: Full SHA that ``mcore`` is expected to be at, or None where it isn't under git.
        bridge_commit: The same of ``bridge``.
        is_ours: The trees were made by lossbisect: whatever a run leaves in them may go.
        stands_for: Full SHA of the commit that ``mcore_commit`` is with patches on top; None: it is that commit itself.
    """

    mcore: Path | None = None
    bridge: Path | None = None
    mcore_commit: str | None = None
    bridge_commit: str | None = None
    is_ours: bool = False
    stands_for: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One run, as asked for.

    Attributes:
        sources: The code to run.
        recipe: Name of a built-in recipe, or path of a recipe file.
        trainer: What runs it.
        lane: Where it runs.
        python: Interpreter that has torch and the trainer's other requirements.
        timeout_s: Wall time after which the run is killed, seconds.
        env: Environment variables set on top of the caller's.
        executor: Where it takes place, as far as that can change its numbers: ``local``, ``slurm``, or the command.
    """

    sources: Sources
    recipe: str
    trainer: TrainerName
    lane: Lane
    python: Path
    timeout_s: float = 1800.0
    env: Mapping[str, str] = field(default_factory=dict)
    executor: str = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What really ran, as the run itself said.

    Attributes:
        megatron_core_file: ``megatron.core.__file__`` in the trainer's process.
        megatron_core_version: ``megatron.core.__version__``.
        mcore_commit: HEAD of the git tree that holds that file, or None if it is in none.
        is_clean: That tree has no changed tracked file; None if it is under no git tree.
        megatron_bridge_file: The same for ``megatron.bridge``; None if it was not imported.
        python: Version of Python.
        torch: Version of torch.
        lane: The lane it ran on.
        bridge_commit: HEAD of the git tree that holds ``megatron_bridge_file``, or None.
        bridge_is_clean: That tree's sources have no changed tracked file; None if it is under no git tree.
        cuda: Version of CUDA that torch was built for; None for a build without it.
        driver: Version of NVIDIA's driver; None without one, and on the CPU lane.
        gpu: Model of the GPUs; None without any, and on the CPU lane.
        processor: The CPU's model and a digest of its abilities.
        image: The container's image, as far as anything in it tells.
        packages: Versions of the installed packages that can change numbers, by name.
        flags: torch's switches for repeatable runs when ``megatron.core`` was imported.
        variables: Environment variables that can change numbers, as the run was started; secrets are masked.
    """

    megatron_core_file: str
    megatron_core_version: str
    mcore_commit: str | None
    is_clean: bool | None
    megatron_bridge_file: str | None
    python: str
    torch: str
    lane: str
    bridge_commit: str | None = None
    bridge_is_clean: bool | None = None
    cuda: str | None = None
    driver: str | None = None
    gpu: str | None = None
    processor: str | None = None
    image: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """One run, as it happened.

    Attributes:
        spec: What was asked.
        out: The run's own directory: ``console.log``, ``scalars.ndjson`` and all that the trainer wrote.
        argv: The command line.
        outcome: How it ended.
        reason: One sentence: why it failed, timed out or is void; for a finished run its number of iterations.
        exit_code: The process's exit code; negative for a signal; None after a time-out.
        duration_s: Wall time, seconds.
        provenance: What really ran; None if it ended before it could say.
        cause: Of a run that failed or timed out: what is to blame.
        stored_as: Id in the run store of a finished run that was taken from there instead of being run again.
    """

    spec: RunSpec
    out: Path
    argv: tuple[str, ...]
    outcome: Outcome
    reason: str
    exit_code: int | None
    duration_s: float
    provenance: Provenance | None
    cause: Cause | None = None
    stored_as: str | None = None

    @property
    def console(self) -> Path:
        """The trainer's standard output and error, as one file."""
        return self.out / "console.log"

    @property
    def scalars(self) -> Path:
        """Full-precision values, one JSON object a line: tag, iteration, value."""
        return self.out / "scalars.ndjson"
