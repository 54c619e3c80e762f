"""The demo's history through the git hooks, with real trainings."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lossbisect.bisect.codebase import SUBMODULE
from lossbisect.demo import make_history
from lossbisect.train import cache_directory
from lossbisect.triage.hook import place_of
from lossbisect.triage.ledger import Ledger
from lossbisect.triage.types import Kind
from tests.bisect.support import git

pytestmark = [pytest.mark.real, pytest.mark.slow]

_PATIENCE_S = 900.0


def _command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "lossbisect", *words], check=True, timeout=_PATIENCE_S)


def test_the_hook_reports_the_planted_commit_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit by commit: nothing before the planted one, that one with its culprit, once only; 'ack' silences it."""
    lane = cache_directory() / "lane"
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    if lane.is_dir():  # compiled once for all tests
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "lane").symlink_to(lane)
    made = make_history(tmp_path / "demo", Path(sys.executable), seed=1)
    mcore = made.repo / SUBMODULE
    line = git(mcore, "rev-list", "--first-parent", "--reverse", "main").split()
    place = line.index(made.planted)
    told = tmp_path / "told.md"
    _command("hook", "install", "--repo", str(made.repo), "--notify", f"tee -a {told}")

    def after_checkout(sha: str) -> Kind:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        subprocess.run(["git", "-C", str(mcore), "checkout", "--quiet", sha], check=True, env=clean)
        ledger, until_s = Ledger(tmp_path / "cache"), time.monotonic() + _PATIENCE_S
        while time.monotonic() < until_s:
            kinds = [
                entry.kind
                for series in ledger.all_series()
                for entry in ledger.entries(series)
                if entry.point.mcore == sha
            ]
            if kinds:
                with place_of(made.repo).lock.open("a") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)  # the notification comes after the entry
                return kinds[-1]
            time.sleep(1.0)
        log = "".join(path.read_text() for path in (tmp_path / "cache").glob("hooks/*/hook.log"))
        raise AssertionError(f"nothing was said of {sha}:\n{log}")

    assert after_checkout(line[place - 1]) is Kind.OK
    assert not told.exists()
    moved = after_checkout(made.planted)
    assert moved in (Kind.REGRESSION, Kind.IMPROVEMENT)
    assert made.planted in told.read_text(encoding="utf-8")
    size = told.stat().st_size
    assert after_checkout(line[place + 1]) is moved
    assert told.stat().st_size == size
    _command("ack", made.planted, "--repo", str(made.repo), "--reason", "meant")
    assert after_checkout(line[place + 2]) is Kind.OK
    assert told.stat().st_size == size
