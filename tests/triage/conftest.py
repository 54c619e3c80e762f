"""A made-up trainer, and a history and run store of the test's own."""

from pathlib import Path

import pytest

from tests.bisect import support
from tests.triage.support import Machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Runs read their loss from the tree that they were given, changed as the test says."""
    made = Machine()
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", made.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))
    return made
