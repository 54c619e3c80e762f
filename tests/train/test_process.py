"""A trainer's process when what started it dies."""

import subprocess
import time
from pathlib import Path
from typing import Any

from lossbisect.train.process import run_process
from lossbisect.train.trainers import Launch


def test_a_killed_warm_parent_is_a_killed_run(tmp_path: Path) -> None:
    """The parent dies while its run goes on: the run is ended and was killed, which is no time-out and no result."""
    run = subprocess.Popen(["sleep", "600"], start_new_session=True)

    class Dead:
        def start(self, *_: object, **__: object) -> tuple[int, int]:
            return 1, run.pid

        def wait(self, *_: object) -> None:
            return None

    how = Launch(launcher=("true",), words=(), set_up={}, env={}, cwd=tmp_path, preload=None)
    parent: Any = Dead()
    started_s = time.monotonic()
    assert run_process(how, 600.0, tmp_path / "console.log", None, parent) == -9
    assert time.monotonic() - started_s < 60
    assert run.wait(30) < 0
