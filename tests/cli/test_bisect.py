"""``lossbisect bisect``: exit code and output together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lossbisect.cli import main
from tests.bisect import support
from tests.bisect.support import git, make_history

LOSSES = [10.25] * 3 + [None] + [10.25, 10.25, 10.26, 10.26]
"""Commit 6 moves the loss; the first midpoint can't be imported."""


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs read their loss from the tree that they were given."""
    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", support.play)
    monkeypatch.setattr("lossbisect.bisect.runner.read_curves", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect bisect``."""
    with pytest.raises(SystemExit) as caught:
        main(["bisect", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_a_culprit_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name goes to stdout, progress to stderr."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"FIRST BAD COMMIT: {shas[6][:10]} is the first bad commit")
    assert "Change number 6 (#106)" in shown.out
    assert "Narrowed from [" in shown.err
    assert "Narrowed" not in shown.out


def test_no_culprit_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends with one curve are told apart from a culprit by the exit code."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", shas[5]) == 1
    assert capsys.readouterr().out.startswith("NO CULPRIT: ")


def test_several_candidates_are_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All commits that may be it are listed."""
    shas = make_history(tmp_path / "mlm", [10.25, 10.25, None, None, 10.5])
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("SEVERAL CANDIDATES: One of 3 commits")
    assert all(sha[:10] in shown for sha in shas[2:])
    assert "--retry-skipped" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--good", "main"],
        ["--good", "main", "--bad", "main"],
        ["--good", "nonsense", "--bad", "main"],
        ["--good", "HEAD~1", "--bad", "main", "--recipe", "nonsense"],
        ["--good", "HEAD~1", "--bad", "main", "--tolerance", "wide"],
        ["--resume"],
        ["--resume", "nonsense"],
        ["--good", "HEAD~3", "--bad", "HEAD~3^"],
        ["--good", "HEAD~4", "--bad", "HEAD~3"],
        ["--good", "HEAD~1", "--bad", "main", "--report-dir", "/dev/null/report"],
    ],
)
def test_failures_of_ours_are_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Wrong usage, unknown names and ends that crash are one line on stderr and nothing on stdout."""
    make_history(tmp_path / "mlm", LOSSES)
    monkeypatch.chdir(tmp_path / "mlm")
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Error: " in shown.err


def test_changed_files_need_consent(tmp_path: Path) -> None:
    """With changed tracked files nothing starts, unless they are to be left out."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    (tmp_path / "mlm/number.txt").write_text("changed", encoding="utf-8")
    arguments = ["--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main"]
    assert run(*arguments) == 2
    assert run(*arguments, "--allow-dirty") == 0
    assert (tmp_path / "mlm/number.txt").read_text(encoding="utf-8") == "changed"


def test_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The object has a schema version, the culprit, every run, and full digits."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main", "--json", "--jobs", "1") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema_version"] == 1
    assert report["answer"] == "first bad commit"
    assert report["culprit"]["sha"] == shas[6]
    assert report["culprit"]["pull_request"] == "#106"
    assert report["curves"][2] == {"iteration": 3, "last_good": 10.25, "first_bad": 10.26}
    assert {step["verdict"] for step in report["steps"]} == {"good", "bad", "skip"}


def test_json_of_a_loss_that_went_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NaN isn't JSON: it becomes null."""
    shas = make_history(tmp_path / "mlm", [10.25, 10.25, float("nan")])
    text = (tmp_path / "mlm/megatron/core/loss.py").read_text(encoding="utf-8")
    assert text == "LOSS = nan\n"
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main", "--json") == 0
    report = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert report["curves"][2] == {"iteration": 3, "last_good": 10.25, "first_bad": None}


def test_report_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report folder holds Markdown, JSON and a picture."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    git(tmp_path / "mlm", "config", "remote.origin.url", "git@github.com:NVIDIA/Megatron-LM.git")
    report = tmp_path / "new" / "report"
    arguments = ["--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main", "--report-dir", str(report)]
    assert run(*arguments, "--jobs", "1") == 0
    markdown = (report / "report.md").read_text(encoding="utf-8")
    assert f"NVIDIA/Megatron-LM@{shas[6]}" in markdown
    assert "NVIDIA/Megatron-LM#106" in markdown
    assert "| 3 | 10.25 | 10.26 |" in markdown
    assert "ModuleNotFoundError" in markdown
    assert f"--good {shas[5]} --bad {shas[6]}" in markdown
    assert json.loads((report / "report.json").read_text(encoding="utf-8"))["culprit"]["sha"] == shas[6]
    assert (report / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert str(report / "report.md") in capsys.readouterr().err


def test_resume_shows_the_answer_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finished bisect gives its answer again without a run; --resume needs no id in the checkout."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    assert run("--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main") == 0
    first = capsys.readouterr()
    assert run("--resume", "--repo", str(tmp_path / "mlm")) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "Run 1" not in again.err
    assert run("--repo", str(tmp_path / "mlm"), "--resume", "--metric", "grad_norm") == 2
    assert "metric = lm_loss, not grad_norm" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_prints_the_command_that_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """After Ctrl-C or a polite kill the last words are the command that resumes, and it works."""
    shas = make_history(tmp_path / "mlm", LOSSES)
    script = (
        "import sys, time; sys.path.insert(0, sys.argv.pop(1))\n"
        "import lossbisect.bisect.runner as runner\n"
        "import lossbisect.train.executors.local as local\n"
        "from tests.bisect.support import play, read_play\n"
        "def slow(spec, out, **_):\n"
        "    record = play(spec, out)\n"
        "    time.sleep(float(sys.argv[1]))\n"
        "    return record\n"
        "local.run_recipe, runner.read_curves = slow, read_play\n"
        "from lossbisect.cli import main\n"
        "main(['bisect', *sys.argv[2:]])\n"
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "LOSSBISECT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", script, root]
    ends = ["--repo", str(tmp_path / "mlm"), "--good", shas[0], "--bad", "main"]
    process = subprocess.Popen([*command, "1", *ends], stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Run 3"):
            break
    time.sleep(0.1)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    last = complaint.strip().splitlines()[-1]
    assert "Go on with: lossbisect bisect --resume " in last
    words = last.split("lossbisect bisect ")[1].split()
    done = subprocess.run([*command, "0", *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shas[6] in done.stdout
    assert "Run 3 (good end again)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--bad", "HEAD~2"], "are the same commit"),
        (["--confidence", "nan"], "'nan' is not a number"),
        (["--min-effect", "nan"], "'nan' is not a number"),
        (["--regress", "crash", "--min-effect", "0.1"], "a crash has no size"),
        (["--regress", "throughput", "--all"], "one change at a time"),
        (["--bridge-follows"], "for a Bridge checkout"),
        (["--skip", "HEAD"], "which has to be run"),
        (["--fixup", "nothing.patch"], "neither a file nor a commit"),
    ],
)
def test_a_plan_refuses_what_the_bisect_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    """What can't be run isn't planned either: one line, exit code 2."""
    make_history(tmp_path / "mlm", [10.25] * 4)
    ends = ["--repo", str(tmp_path / "mlm"), "--good", "HEAD~2", "--bad", "HEAD"]
    assert run(*ends, *arguments, "--plan") == 2
    shown = capsys.readouterr()
    assert complaint in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err
