"""One run on its stage: recorder, provenance line, and then the trainer as ``__main__``."""

import atexit
import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossbisect.train.inside import byte_code, preload, provenance, reads, recorder
from lossbisect.train.inside.post_import import after_import
from lossbisect.train.inside.sources import read_classes_once

__all__ = ["Run", "hand_over", "perform"]


@dataclass(frozen=True)
class Run:
    """What to run, in the trainer's process.

    Attributes:
        lane: Name of the lane.
        cache: Directory of things that can be made again.
        out: The run's own directory.
        target: A script's path, or a module's name.
        arguments: Its arguments.
        is_module: ``target`` is a module's name.
    """

    lane: str
    cache: Path
    out: Path
    target: str
    arguments: tuple[str, ...]
    is_module: bool


def perform(run: Run, preloaded: Path, again: list[str] | None = None) -> None:
    """Hand over to the trainer; its ``SystemExit`` and errors pass through.

    Args:
        run: What to run.
        preloaded: File for the list of modules that a warm parent may import beforehand.
        again: Words between the interpreter and the target when the trainer starts itself anew; None: it won't.
    """
    if again is not None:
        _stay_around_after_exec(again)
    remember = preload.remembering(preloaded)
    atexit.register(remember)
    if run.lane == "cpu":  # Bridge's variables concern CUDA and NCCL; a second start would only cost time
        os.environ["_MB_TRAINING_RECIPE_ENV_BOOTSTRAPPED"] = str(os.getpid())
    roots = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    byte_code.keep(run.cache, roots)
    read_classes_once(run.cache)
    write_reads = reads.record(run.out, roots)

    def before_value() -> None:
        write_reads()
        remember()  # most runs of a bisect are ended before their time, and so don't come to their exit

    recorder.install(run.out / "scalars.ndjson", before_value)
    after_import("megatron.core", provenance.announcer(run.lane), even_if_it_fails=True)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))  # a forked run wasn't started with it
    hand_over(run.target, run.arguments, is_module=run.is_module)


_targets: list[str] = []
"""What was handed over to so far in this process; the last one runs."""


def hand_over(target: str, arguments: Sequence[str], *, is_module: bool) -> None:
    """Become the trainer: its script or module as ``__main__``."""
    _targets.append(target)
    sys.argv = [target, *arguments]
    if is_module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(target).resolve().parent))
        runpy.run_path(target, run_name="__main__")


def _stay_around_after_exec(again: list[str]) -> None:
    """A trainer that starts itself anew (Bridge does, to set its environment) is started inside the launcher again."""
    execvpe = os.execvpe

    def execvpe_inside(file: str, args: list[str], env: dict[str, str]) -> None:
        is_trainer = file == sys.executable and args[1:2] == _targets[-1:]
        execvpe(file, [args[0], *again, *args[1:]] if is_trainer else args, env)

    os.execvpe = execvpe_inside  # type: ignore[assignment]
