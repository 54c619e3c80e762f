"""A made-up trainer in place of the real one."""

from pathlib import Path

import pytest

from tests.bisect import support


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs read their loss from the tree that they were given; bisects live in ``tmp_path / "cache"``."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
