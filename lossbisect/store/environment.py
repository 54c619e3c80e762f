"""The environment of a run before it runs, and whether the run's own words agree afterwards.

Nothing here imports torch: packages are read off the folders of the interpreter's path. Only the path itself has to be
asked of the interpreter, in a small process, and is remembered until something that decides it has changed.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lossbisect.errors import TrainerError
from lossbisect.store.types import Environment
from lossbisect.train.inside import fingerprint
from lossbisect.train.types import Lane, Provenance

__all__ = ["Interpreter", "code_digest", "disagreement", "environment_of", "interpreter_of"]

_TRAIN = Path(fingerprint.__file__).parents[1]
_CODE = ("inside/**/*.py", "cpu_lane/**/*.py", "trainers.py", "render*.py", "parts.py")
_PATH_VARIABLES = ("HOME", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables that decide an interpreter's path; PYTHONPATH is the run's own."""
_PROBE_TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """What an interpreter is.

    Attributes:
        python: Version of Python.
        path: Its module path, without what the environment adds.
    """

    python: str
    path: tuple[str, ...]


def environment_of(interpreter: Interpreter, lane: Lane, variables: Mapping[str, str]) -> Environment:
    """What a run by this interpreter on this machine would find.

    Args:
        interpreter: What runs it.
        lane: Where.
        variables: The run's whole environment.
    """
    driver, gpu = fingerprint.video() if lane is Lane.CUDA else (None, None)
    return Environment(
        python=interpreter.python,
        packages=fingerprint.installed(interpreter.path),
        processor=fingerprint.processor() if lane is Lane.CPU else None,
        driver=driver,
        gpu=gpu,
        image=fingerprint.image(variables),
        variables=fingerprint.variables(variables),
        code=code_digest(),
    )


def disagreement(environment: Environment, ran: Provenance) -> str | None:
    """What a run says otherwise than was known before it, in a clause; None if all agrees.

    A trainer may set further variables; those that were known must have been there when the run began.
    """
    told: dict[str, tuple[object, object]] = {
        "Python": (environment.python, ran.python),
        "the image": (environment.image, ran.image),
        "the driver": (environment.driver, ran.driver),
        "the GPU": (environment.gpu, ran.gpu),
    }
    if environment.processor is not None:
        told["the CPU"] = (environment.processor, ran.processor)
    for name in sorted({*environment.packages, *ran.packages}):
        told[name] = (environment.packages.get(name), ran.packages.get(name))
    for name, value in environment.variables.items():
        told[name] = (value, ran.variables.get(name))
    for name, (before, after) in told.items():
        if before != after:
            return f"{name} was {after or 'not there'} in the run, and {before or 'not there'} to the store"
    return None


@lru_cache(1)
def code_digest() -> str:
    """Digest of lossbisect's code that takes part in a training: another version may give other numbers."""
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _CODE for file in _TRAIN.glob(pattern)}):
        digest.update(f"{file.relative_to(_TRAIN)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


def interpreter_of(python: Path, cache: Path) -> Interpreter:
    """An interpreter's version and path, asked once and then remembered in ``cache``.

    Raises:
        TrainerError: It can't be started.
    """
    name = hashlib.sha256(os.fsencode(python.absolute())).hexdigest()[:12]
    file = cache / "interpreters" / f"{name}.json"
    known = _remembered(file, python)
    if known is not None:
        return known
    asked = _ask(python)
    stamp = _stamp(python, asked.path)
    unfinished = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps({"stamp": stamp, "python": asked.python, "path": asked.path}))
        unfinished.replace(file)
    except OSError:  # then it's asked again next time
        pass
    return asked


def _remembered(file: Path, python: Path) -> Interpreter | None:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        found = Interpreter(python=told["python"], path=tuple(told["path"]))
        return found if told["stamp"] == _stamp(python, found.path) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _ask(python: Path) -> Interpreter:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    try:
        done = subprocess.run(
            [str(python), fingerprint.__file__], capture_output=True, text=True, check=True, env=environment,
            timeout=_PROBE_TIMEOUT_S,
        )  # fmt: skip
        told = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise TrainerError(
            f"{python}: can't be asked for its path: {error}. Name the interpreter with --python."
        ) from None
    return Interpreter(python=told["python"], path=tuple(told["path"]))


def _stamp(python: Path, path: Iterable[str]) -> list[object]:
    """What decides an interpreter's path: the program, its environment's file, ``.pth`` files, some variables."""
    seen: list[object] = [os.environ.get(name) for name in _PATH_VARIABLES]
    seen += [str(python.resolve()), _about(python), _about(python.parent.parent / "pyvenv.cfg")]
    for folder in path:
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".pth"))  # noqa: PTH208
        except OSError:
            names = []
        seen += [folder, *([name, *_about(Path(folder, name))] for name in names)]
    return seen


def _about(file: Path) -> list[int]:
    try:
        found = file.stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]
