"""Several processes at once, and kills at any moment."""

import os
import subprocess
import sys
import time
from pathlib import Path

from lossbisect.store.store import RunStore

from .made import made_key

RACING = Path(__file__).with_name("racing.py")


def _start(cache: Path, folder: Path, name: str, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(RACING), str(cache), str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_store_at_once_lose_nothing(tmp_path: Path) -> None:
    """Four processes that make and fill one store end with every run, each with a repetition of its own."""
    cache = tmp_path / "cache"
    processes = [_start(cache, tmp_path, f"p{number}", 8) for number in range(4)]
    for process in processes:
        told, _ = process.communicate(timeout=120)
        assert (told, process.returncode) == ("done\n", 0)
    runs = RunStore(cache).runs()
    assert sorted(run.repetition for run in runs) == list(range(32))
    assert all((run.record.out / "scalars.ndjson").is_file() for run in runs)


def test_a_kill_at_any_moment_leaves_no_half_run(tmp_path: Path) -> None:
    """After kill -9 in the midst of storing, every run that is found is whole, and what is left over can be swept."""
    cache = tmp_path / "cache"
    store, key = RunStore(cache), made_key()
    for attempt in range(6):
        process = _start(cache, tmp_path, f"a{attempt}", 10_000)
        before, deadline_s = len(store.runs()), time.monotonic() + 60
        while len(store.runs()) < before + 2 and time.monotonic() < deadline_s:
            time.sleep(0.003 * (attempt + 1))
        process.kill()
        process.communicate()
        for run in store.runs():
            assert len((run.record.out / "console.log").read_bytes()) > 50_000
            assert (run.record.out / "scalars.ndjson").read_text().count("lm loss") == 3
    assert len(store.runs()) >= 12
    assert store.recall(key, tmp_path / "whole") is not None
    known = {run.id for run in store.runs()}
    left = [path for path in store.folder.iterdir() if path.name not in known]
    assert store.orphans() == [], "a folder of this moment may be another process's"
    for path in left:
        os.utime(path, (0, 0))
    assert [path for path, _ in store.orphans()] == sorted(left)
