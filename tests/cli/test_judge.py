"""``lossbisect judge``: exit codes, alone and under the real ``git bisect run``."""

import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from lossbisect.bisect.judge import judge_checkout
from lossbisect.cli import main
from tests.bisect.support import git, make_bridge, make_history, play, read_play, write_curve

LOSSES = [10.25] * 4 + [None] + [10.25, 10.26, 10.26]
"""Commit 6 moves the loss; 4 can't be imported."""


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """The folder of a good run."""
    folder = tmp_path / "good run"
    folder.mkdir()
    write_curve(folder / "scalars.ndjson", [11.0, 10.5, 10.25, 10.125])
    return folder


def judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *arguments: str) -> int:
    """The exit code of ``lossbisect judge`` with the made-up trainer."""
    monkeypatch.setattr("lossbisect.cli.judge.judge_checkout", partial(judge_checkout, run=play, read=read_play))
    with pytest.raises(SystemExit) as caught:
        main(["judge", "--work-dir", str(tmp_path / "work"), *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(("index", "code", "word"), [(2, 0, "good: "), (6, 1, "bad: "), (4, 125, "skip: ")])
def test_exit_codes_of_verdicts(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    baseline: Path,
    index: int,
    code: int,
    word: str,
) -> None:
    """Good is 0, bad is 1, a run that fails is 125, each with its reason on stdout."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    git(tmp_path / "mlm", "checkout", "--quiet", shas[index])
    assert judged(monkeypatch, tmp_path, "--baseline", str(baseline), "--repo", str(tmp_path / "mlm")) == code
    assert capsys.readouterr().out.startswith(word)


def test_a_bridge_checkout_is_judged_by_its_submodule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: Path
) -> None:
    """In a Bridge checkout the commit at which the submodule stands is run."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    make_bridge(tmp_path / "bridge", tmp_path / "mlm")
    arguments = ("--baseline", str(baseline), "--repo", str(tmp_path / "bridge"))
    assert judged(monkeypatch, tmp_path, *arguments) == 1
    git(tmp_path / "bridge/3rdparty/Megatron-LM", "checkout", "--quiet", shas[1])
    assert judged(monkeypatch, tmp_path, *arguments) == 0


def test_a_tolerance_turns_a_small_change_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: Path) -> None:
    """With a tolerance above the change the commit is good."""
    make_history(tmp_path / "mlm", LOSSES)
    arguments = ("--baseline", str(baseline), "--repo", str(tmp_path / "mlm"), "--tolerance", "rtol=1e-2")
    assert judged(monkeypatch, tmp_path, *arguments) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-such-option"],
        [],
        ["--baseline", "nowhere"],
        ["--baseline", "{baseline}", "--repo", "nowhere"],
        ["--baseline", "{baseline}", "--metric", "nothing"],
        ["--baseline", "{baseline}", "--tolerance", "wide"],
        ["--baseline", "{baseline}", "--lane", "tpu"],
        ["--baseline", "{baseline}", "--timeout", "0"],
    ],
)
def test_every_failure_of_ours_is_128(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: Path, arguments: list[str]
) -> None:
    """A wrong option, a missing baseline or a missing checkout is no verdict."""
    make_history(tmp_path / "mlm", LOSSES)
    monkeypatch.chdir(tmp_path / "mlm")
    assert judged(monkeypatch, tmp_path, *(word.format(baseline=baseline) for word in arguments)) == 128


def test_a_changed_tree_is_128(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: Path) -> None:
    """Changed tracked files make every commit's run worthless, so the search stops."""
    make_history(tmp_path / "mlm", LOSSES)
    (tmp_path / "mlm/number.txt").write_text("changed", encoding="utf-8")
    assert judged(monkeypatch, tmp_path, "--baseline", str(baseline), "--repo", str(tmp_path / "mlm")) == 128


def test_a_bug_of_ours_is_128(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: Path) -> None:
    """An exception that nobody expected doesn't blame a commit either."""
    make_history(tmp_path / "mlm", LOSSES)
    monkeypatch.setattr("tests.bisect.support.make_record", lambda *_: 1 / 0)
    assert judged(monkeypatch, tmp_path, "--baseline", str(baseline), "--repo", str(tmp_path / "mlm")) == 128


def bisect_run(repo: Path, shas: list[str], *command: str) -> subprocess.CompletedProcess[str]:
    """Let the real git bisect search between the first and the last commit."""
    git(repo, "bisect", "start", shas[-1], shas[0])
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    words = ["git", "bisect", "run", "sh", "-c", shlex.join(command)]
    return subprocess.run(words, cwd=repo, env=environment, capture_output=True, text=True, check=False)


def test_git_bisect_run_names_the_commit(tmp_path: Path, baseline: Path) -> None:
    """Under the real git bisect run, a failing commit is skipped and the right one is named."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, LOSSES)
    (repo / ".git/info/exclude").write_text("*.pyc\n", encoding="utf-8")
    script = str(Path(__file__).with_name("judged.py"))
    done = bisect_run(
        repo, shas, sys.executable, script, "--baseline", str(baseline), "--work-dir", str(tmp_path / "work")
    )
    assert f"{shas[6]} is the first bad commit" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["--baseline", "nowhere"], ["--baseline", "{baseline}", "--repo", "/"]]
)
def test_git_bisect_run_stops_on_a_failure_of_ours(tmp_path: Path, baseline: Path, arguments: list[str]) -> None:
    """A wrong call makes git stop, instead of naming a false first bad commit."""
    repo = tmp_path / "mlm"
    shas = make_history(repo, [10.25] * 5)
    words = [word.format(baseline=baseline) for word in arguments]
    done = bisect_run(repo, shas, sys.executable, "-c", "from lossbisect.cli import main; main()", "judge", *words)
    assert done.returncode != 0
    assert "is the first bad commit" not in done.stdout
    assert "128" in done.stdout + done.stderr
