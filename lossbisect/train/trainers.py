"""The command line and environment of a trainer. Pure apart from looking which script a checkout has."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.train.inside.parts import THEN
from lossbisect.train.parts import Part, parts_of
from lossbisect.train.recipes import Recipe
from lossbisect.train.render import BRIDGE_RECIPE, bridge_overrides, mlm_arguments
from lossbisect.train.render_core import core_settings
from lossbisect.train.types import Lane, RunSpec, Sources, TrainerName

__all__ = ["Launch", "Start", "launch", "set_up_of", "start_of"]

_INSIDE = Path(__file__).parent / "inside"
_BRIDGE_SCRIPT = Path("scripts/training/run_recipe.py")
_MLM_SCRIPT = Path("pretrain_gpt.py")

_REPEATABLE = {
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Nothing of a correlation recipe comes from a hub; without these, imports may wait for a network that isn't there.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
_ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
"""What `torch.distributed.run` would set for a single process."""
_CPU_LANE = {
    # The order of additions depends on the number of threads.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # The machine's own name need not resolve: ranks on the CPU lane are on one machine.
    **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """How all runs of a kind start.

    Attributes:
        launcher: Interpreter, `launch.py` and the options that don't depend on the run.
        set_up: Variables to set on top of the caller's environment.
        preload: File that lists what a warm parent may import beforehand; None: each run must start by itself.
    """

    launcher: tuple[str, ...]
    set_up: Mapping[str, str]
    preload: Path | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """How to start a trainer.

    Attributes:
        start: What is the same for all runs of its kind.
        words: The run's directory, and the trainer's script or module with its arguments.
        env: Variables of this run.
        cwd: The directory to start in: the run's own, so that what the trainer writes unasked stays there.
    """

    start: Start
    words: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line that starts the run by itself."""
        return (*self.start.launcher, "--out", *self.words)

    @property
    def variables(self) -> dict[str, str]:
        """All that the run gets on top of the caller's environment."""
        return {**self.start.set_up, **self.env}


def launch(spec: RunSpec, recipe: Recipe, *, out: Path, cache: Path, port: int) -> Launch:
    """How to run ``recipe`` as ``spec`` asks, writing into ``out``.

    Args:
        spec: What to run.
        recipe: The spec's recipe.
        out: The run's own directory.
        cache: Directory of compiled data-set helpers and the like; each interpreter has its own.
        port: A free port on this machine, for torch.distributed's rendezvous.

    Raises:
        TrainerError: The trainer needs a checkout that the spec doesn't name, or that lacks its script.
        RecipeError: The trainer can't express the recipe.
    """
    target = _in_parts([_TARGETS[spec.trainer](spec, recipe, out, part) for part in parts_of(recipe)])
    return Launch(
        start=start_of(spec, recipe, cache=cache, port=port),
        words=(str(out), *target),
        env={
            "MASTER_PORT": str(port),
            "PYTHONDONTWRITEBYTECODE": "" if _may_keep_byte_code(spec.sources) else "1",
            "PYTHONPATH": os.pathsep.join(map(str, _python_path(spec.sources))),
            **spec.env,
        },
        cwd=out,
    )


def start_of(spec: RunSpec, recipe: Recipe, *, cache: Path, port: int) -> Start:
    """How runs like ``spec`` start, whatever code they use; arguments as for `launch`."""
    preload = cache / f"preload-{spec.trainer}.json"
    ours = (str(_INSIDE / "launch.py"), "--lane", spec.lane, "--cache", str(cache), "--preload", str(preload))
    is_one_rank = recipe.ranks == 1
    return Start(
        launcher=(str(spec.python), *(() if is_one_rank else _several_ranks(recipe.ranks, port)), *ours),
        set_up=set_up_of(spec.lane, recipe.ranks),
        preload=preload if spec.lane is Lane.CPU and is_one_rank and not spec.env else None,
    )


def set_up_of(lane: Lane, ranks: int) -> dict[str, str]:
    """Variables that every run of a lane gets on top of the caller's."""
    return {**_REPEATABLE, **(_ONE_RANK if ranks == 1 else {}), **(_CPU_LANE if lane is Lane.CPU else {})}


def _several_ranks(ranks: int, port: int) -> tuple[str, ...]:
    return (
        *("-m", "torch.distributed.run", "--nnodes=1", f"--nproc_per_node={ranks}"),
        *("--master_addr=127.0.0.1", f"--master_port={port}"),
    )


def _may_keep_byte_code(sources: Sources) -> bool:
    """Without byte code of installed packages a run compiles longer than it trains.

    The checkout's own is never written beside it (`inside/byte_code.py`), but a package may be a user's checkout too.
    """
    return sources.is_ours or (sources.mcore is None and sources.bridge is None)


def _python_path(sources: Sources) -> list[Path]:
    """Ours alone: another ``megatron`` on the caller's path would be imported in the checkout's place."""
    paths = [sources.mcore] if sources.mcore else []
    return [*paths, sources.bridge / "src"] if sources.bridge else paths


def _in_parts(targets: list[list[str]]) -> list[str]:
    """One target as it is; several one after another, each in a process of its own."""
    if len(targets) == 1:
        return targets[0]
    words = ["-m", "lossbisect.train.inside.parts", *targets[0]]
    return [*words, *(word for target in targets[1:] for word in (THEN, *target))]


def _bridge(spec: RunSpec, recipe: Recipe, out: Path, part: Part) -> list[str]:
    overrides = bridge_overrides(recipe, lane=spec.lane, out=out, part=part)
    if spec.sources.bridge and (spec.sources.bridge / _BRIDGE_SCRIPT).is_file():
        return [str(spec.sources.bridge / _BRIDGE_SCRIPT), "--recipe", BRIDGE_RECIPE, *overrides]
    return ["-m", "lossbisect.train.inside.bridge_main", BRIDGE_RECIPE, *overrides]


def _mlm(spec: RunSpec, recipe: Recipe, out: Path, part: Part) -> list[str]:
    arguments = mlm_arguments(recipe, lane=spec.lane, out=out, part=part)
    if spec.sources.mcore is None:
        return ["-m", "lossbisect.train.inside.mlm_main", *arguments]
    script = spec.sources.mcore / _MLM_SCRIPT
    if not script.is_file():
        raise TrainerError(
            f"{script}: missing, so the mlm trainer can't run this tree. "
            "Use --trainer core or bridge, or a whole Megatron-LM checkout."
        )
    return [str(script), *arguments]


def _core(spec: RunSpec, recipe: Recipe, out: Path, part: Part) -> list[str]:
    return ["-m", "lossbisect.train.inside.core_main", *core_settings(recipe, lane=spec.lane, out=out, part=part)]


_TARGETS = {TrainerName.BRIDGE: _bridge, TrainerName.MLM: _mlm, TrainerName.CORE: _core}
