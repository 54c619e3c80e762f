"""The whole job: a real bisect over a history of real Megatron-Core, trained on the CPU lane."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lossbisect.demo.edits import BREAKS

pytestmark = pytest.mark.real

ALWAYS = 4
"""The seed that every test run bisects: one run at a time, its first probe hits the commit that doesn't import."""


@pytest.mark.parametrize(
    "seed", [ALWAYS, pytest.param(5, marks=pytest.mark.slow), pytest.param(11, marks=pytest.mark.slow)]
)
def test_the_demo_names_the_planted_commit(seed: int, tmp_path: Path) -> None:
    """Real training at real commits leads to the planted commit, confirmed, with its report written."""
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "lossbisect", "demo", "--seed", str(seed), "--folder", str(folder), "--jobs", "1"]
    environment = {**os.environ, "LOSSBISECT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((folder / "report" / "report.json").read_text())
    assert report["answer"] == "first bad commit"
    assert report["culprit"]["subject"].rpartition(" (#")[0] in {edit.subject for edit in BREAKS}
    assert "This is the commit that the demo had planted" in done.stdout
    skipped = [step["reason"] for step in report["steps"] if step["verdict"] == "skip"]
    assert all("ImportError" in reason for reason in skipped)
    assert skipped or seed != ALWAYS
    assert (folder / "report" / "curves.png").stat().st_size > 10_000
    assert report["culprit"]["sha"] in (folder / "report" / "report.md").read_text()
