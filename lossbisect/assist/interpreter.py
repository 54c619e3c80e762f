"""What the trainer's interpreter would import, and what is installed in it. Asked in a process of its own."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lossbisect.errors import TrainerError

__all__ = ["Interpreter", "ask_interpreter"]

_TIMEOUT_S = 120.0
"""The first start of an interpreter on a busy network file system takes long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """An interpreter as it is started in this environment.

    Attributes:
        executable: Its path.
        python: Its version.
        prefix: Root of its environment.
        path: Its module search path.
        origins: What each name would be imported from: a file, the first folder of a namespace package, or None.
        versions: Installed distributions, by name.
        torch_cuda: CUDA version that torch was built for; None for a CPU build, or without torch.
        is_named: The user named it; otherwise it is the one that runs lossbisect.
    """

    executable: Path
    python: str
    prefix: Path
    path: tuple[str, ...]
    origins: Mapping[str, str | None]
    versions: Mapping[str, str] = field(default_factory=dict)
    torch_cuda: str | None = None
    is_named: bool = False


def ask_interpreter(python: Path, *, is_named: bool = False, env: Mapping[str, str] | None = None) -> Interpreter:
    """What an interpreter says about itself, with ``PYTHONPATH`` as it is now.

    Args:
        python: The interpreter.
        is_named: The user named it.
        env: Environment to start it in; None: this process's.

    Raises:
        TrainerError: It can't be started, or gives no answer.
    """
    script = Path(__file__).with_name("probe.py")
    try:
        done = subprocess.run(
            [str(python), str(script)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            env=dict(env if env is not None else os.environ),
        )
        told = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise TrainerError(
            f"{python}: can't be asked what is installed in it ({error}). Name another: --python."
        ) from error
    if told is None:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise TrainerError(f"{python}: can't be asked what is installed in it ({said}). Name another: --python.")
    return Interpreter(
        executable=Path(told["executable"] or python),
        python=told["python"],
        prefix=Path(told["prefix"]),
        path=tuple(told["path"]),
        origins=told["origins"],
        versions=told["versions"],
        torch_cuda=told["torch_cuda"],
        is_named=is_named,
    )
