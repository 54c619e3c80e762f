"""A trainer's process when what starts it dies, or isn't ready."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lossbisect
from lossbisect.errors import RunCancelledError
from lossbisect.train.process import run_process
from lossbisect.train.trainers import Launch, Start
from lossbisect.train.warm import WarmParent


def test_a_killed_warm_parent_is_a_killed_run(tmp_path: Path) -> None:
    """The parent dies while its run goes on: the run is ended and was killed, which is no time-out and no result."""
    run = subprocess.Popen(["sleep", "600"], start_new_session=True)

    class Dead:
        def start(self, *_: object, **__: object) -> int:
            return 1

        def group(self, *_: object) -> int:
            return run.pid

        def wait(self, *_: object) -> None:
            return None

    how = _launch(tmp_path, (), launcher=("true",))
    parent: Any = Dead()
    started_s = time.monotonic()
    assert run_process(how, 600.0, tmp_path / "console.log", None, parent) == -9
    assert time.monotonic() - started_s < 60
    assert run.wait(30) < 0


def _launch(folder: Path, words: tuple[str, ...], launcher: tuple[str, ...] = ()) -> Launch:
    start = Start(launcher=launcher, set_up={}, preload=None)
    return Launch(start=start, words=words, env={"PYTHONPATH": ""}, cwd=folder)


def _importing_parent(folder: Path, seconds: float) -> WarmParent:
    """A warm parent that needs some time to import what is on its list."""
    (folder / "slow_to_import.py").write_text(f"import time\ntime.sleep({seconds})\n")
    preload = folder / "preload.json"
    preload.write_text(json.dumps(["slow_to_import"]))
    launcher = str(Path(lossbisect.__file__).parent / "train" / "inside" / "launch.py")
    words = [sys.executable, launcher, "--lane", "cuda", "--cache", str(folder), "--preload", str(preload), "--warm"]
    return WarmParent(words, {"PYTHONPATH": str(folder)}, folder / "parent.log")


def _writer(folder: Path) -> Launch:
    """A run that leaves a file."""
    (folder / "script.py").write_text("import sys\nopen(sys.argv[1], 'w').close()\n")
    words = (str(folder), str(folder / "script.py"), str(folder / "it ran"))
    return _launch(folder, words)


def test_a_run_that_waits_for_its_parent_can_be_ended(tmp_path: Path) -> None:
    """Neither ending a run nor closing its parent waits for the parent's imports."""
    parent = _importing_parent(tmp_path, 600)
    stop = threading.Event()
    stop.set()
    started_s = time.monotonic()
    with pytest.raises(RunCancelledError):
        run_process(_writer(tmp_path), 600.0, tmp_path / "console.log", None, parent, stop=stop)
    parent.close()
    assert time.monotonic() - started_s < 4


def test_a_run_that_was_ended_while_its_parent_imported_never_starts(tmp_path: Path) -> None:
    """Once the parent is ready it forks the runs that are still wanted, and not the others."""
    parent = _importing_parent(tmp_path, 3)
    dropped, kept = tmp_path / "dropped", tmp_path / "kept"
    dropped.mkdir()
    kept.mkdir()
    stop = threading.Event()
    stop.set()
    with pytest.raises(RunCancelledError):
        run_process(_writer(dropped), 60.0, dropped / "console.log", None, parent, stop=stop)
    assert run_process(_writer(kept), 60.0, kept / "console.log", None, parent) == 0
    assert (kept / "it ran").exists()
    assert not (dropped / "it ran").exists()
    assert (tmp_path / "parent.log").read_text() == "", "nor does it fail to"
    parent.close()


def test_a_parent_that_died_before_it_could_fork_is_made_up_for(tmp_path: Path) -> None:
    """The run starts by itself, without one."""
    parent = _importing_parent(tmp_path, 600)
    parent._process.kill()  # noqa: SLF001  # as the kernel does when memory is short
    parent._process.wait()  # noqa: SLF001
    how = _launch(tmp_path, (), launcher=(sys.executable, "-c", "open('by itself', 'w').close()"))
    assert run_process(how, 60.0, tmp_path / "console.log", None, parent) == 0
    assert (tmp_path / "by itself").exists()
    parent.close()
