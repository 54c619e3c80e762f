"""The examples for CI, and the command line, with real processes and a trainer that needs no torch."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.bisect.support import commit, git
from tests.store.test_bisects import TRAINER

EXAMPLES = Path(__file__).parents[2] / "examples/ci"
SUITE = '[[triage]]\nrecipe = "vanilla-cpu"\nlane = "cuda"\nowners = ["@ada"]\n'


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A Megatron-LM checkout with a suite of its own, whose last commit moves the loss."""
    repo = tmp_path / "Megatron-LM"
    repo.mkdir()
    git(repo, "init", "--quiet")
    shas = []
    for number, loss in enumerate((10.5, 10.5, 10.75)):
        files = {"megatron/core/__init__.py": "", "megatron/core/loss.py": f"LOSS = {loss!r}\n"}
        files |= {"pretrain_gpt.py": TRAINER, "number.txt": f"{number}\n", "lossbisect.toml": SUITE}
        shas.append(commit(repo, f"Change {number}", files))
    return repo, shas


def _environment(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    program = tools / "lossbisect"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lossbisect "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return clean | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "LOSSBISECT_CACHE_DIR": str(tmp_path / "cache"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }


def _shell(repo: Path, tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=repo, env=_environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip


def _steps(name: str) -> str:
    """The shell lines of an example."""
    told: Any = importlib.import_module("yaml").safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    if "jobs" in told:
        return "\n".join(step["run"] for step in told["jobs"]["triage"]["steps"] if "run" in step)
    return "\n".join(told["loss-triage"]["script"])


@pytest.mark.parametrize("name", ["github-workflow.yml", "gitlab-ci.yml"])
def test_the_steps_of_the_examples_run(name: str, history: tuple[Path, list[str]], tmp_path: Path) -> None:
    """A push that changes nothing passes; one that moves the loss fails with 1, and its reports name the culprit."""
    repo, shas = history
    git(repo, "checkout", "--quiet", shas[1])
    done = _shell(repo, tmp_path, _steps(name))
    assert done.returncode == 0, done.stderr
    git(repo, "checkout", "--quiet", shas[2])
    done = _shell(repo, tmp_path, _steps(name))
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(f"REGRESSION: {shas[2][:10]} Change 2")
    root = ElementTree.fromstring((repo / "triage/report.xml").read_text(encoding="utf-8"))  # noqa: S314  # ours
    assert root.get("failures") == "1"
    assert shas[2] in (repo / "triage/report.md").read_text(encoding="utf-8")
    if name.startswith("github"):
        assert shas[2] in (tmp_path / "summary.md").read_text(encoding="utf-8")
        assert json.loads((repo / "triage/report.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]


def test_the_command_line_from_alarm_to_acknowledgement(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Range, news told once by --notify, ack, since-last: each with its exit code; another environment is named so."""
    repo, shas = history
    told = tmp_path / "told"
    command = f"lossbisect triage --since-last --notify 'tee -a {told}'"
    assert _shell(repo, tmp_path, command).returncode == 1
    size = told.stat().st_size
    done = _shell(repo, tmp_path, command)
    assert (done.returncode, done.stdout) == (0, "")
    done = _shell(repo, tmp_path, "lossbisect triage --json")
    assert done.returncode == 1
    assert not json.loads(done.stdout)["is_news"]
    assert told.stat().st_size == size
    done = _shell(repo, tmp_path, f"lossbisect ack {shas[2]} --reason 'a better start'")
    assert (done.returncode, "a better start" in done.stdout) == (0, True)
    assert _shell(repo, tmp_path, "lossbisect triage").returncode == 0
    done = _shell(repo, tmp_path, "lossbisect triage --range nothing")
    assert (done.returncode, "names no two commits" in done.stderr) == (2, True)
    done = _shell(repo, tmp_path, "lossbisect triage --report a.doc")
    assert (done.returncode, ".sarif" in done.stderr) == (2, True)


def test_the_poller_judges_each_new_commit_of_a_bare_repository(
    history: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """It says what the first commit and the pushed one did, and stops when told."""
    repo, shas = history
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), str(bare))
    git(bare, "update-ref", "HEAD", shas[1])
    suite = repo / "lossbisect.toml"
    words = [sys.executable, "-m", "lossbisect", "triage", "--follow", "--interval", "0.2", "--repo", str(bare)]
    follower = subprocess.Popen(
        [*words, "--suite", str(suite)],
        env=_environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert follower.stdout is not None
        heads = iter(line for line in follower.stdout if line.startswith(("OK:", "REGRESSION:")))
        assert next(heads).startswith(f"OK: {shas[1][:10]}")
        git(bare, "update-ref", "HEAD", shas[2])
        assert next(heads).startswith(f"REGRESSION: {shas[2][:10]}")
    finally:
        follower.terminate()
        follower.communicate(timeout=30)
