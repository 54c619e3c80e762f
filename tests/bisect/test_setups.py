"""Two whole set-ups and their mixes: real git and trees, a made-up trainer; the command line included."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.bisect.axes import Axis
from lossbisect.bisect.setups import AxesAnswer, AxesResult, SetupNames, compare_setups
from lossbisect.bisect.training import Training
from lossbisect.cli import main
from lossbisect.errors import EndpointError, GitError
from lossbisect.report.axes import next_commands
from lossbisect.train.types import RunRecord, RunSpec
from tests.bisect import support
from tests.bisect.support import make_history, snapshot
from tests.bisect.test_descent import History, make, play

A, B = 10.25, 10.5


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The recipe gqa-cpu adds to the loss if the tree's Bridge lets it."""

    def play_recipe(spec: RunSpec, out: Path, **_: object) -> RunRecord:
        record = play(spec, out) if spec.sources.bridge else support.play(spec, out)
        if spec.recipe == "gqa-cpu" and record.outcome.value == "finished":
            values = [json.loads(line)["value"] + 0.125 for line in record.scalars.read_text().splitlines()]
            support.write_curve(record.scalars, values)
        return replace(record, spec=spec)

    monkeypatch.setattr("lossbisect.train.executors.local.run_recipe", play_recipe)
    monkeypatch.setattr("lossbisect.bisect.setups.read_run", support.read_play)
    monkeypatch.setenv("LOSSBISECT_CACHE_DIR", str(tmp_path / "cache"))


def ask(history: History, good: SetupNames, bad: SetupNames) -> AxesResult:
    """Which part it is."""
    return compare_setups(history.repo, good, bad, out=history.repo.parent / "runs")


def test_megatron_core_alone(tmp_path: Path) -> None:
    """Of a new Bridge with its pin and a new recipe name the pinned Megatron-Core is named, and how to go on."""
    history = make(tmp_path, [A, A, B], [0, (2, "PLUS = 0.0\n")])
    before = snapshot(history.repo)
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))
    assert (result.answer, result.axes) == (AxesAnswer.FOUND, (Axis.MCORE, Axis.BRIDGE))
    assert result.carried is not None
    assert (result.carried.axes, result.carried.is_alone) == ((Axis.MCORE,), True)
    assert len(result.runs) == 4
    (command,) = next_commands(result)
    ends = f"--good {history.mcore[0]} --bad {history.mcore[2]} --bridge {history.bridge[0]}"
    assert ends in command
    assert snapshot(history.repo) == before


def test_bridge_alone(tmp_path: Path) -> None:
    """The search to run next is one of Bridge's commits."""
    history = make(tmp_path, [A, A, A], [0, (2, "PLUS = 0.25\n")])
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))
    assert result.carried is not None
    assert result.carried.axes == (Axis.BRIDGE,)
    assert f"--search bridge --good {history.bridge[0]} --bad {history.bridge[1]}" in next_commands(result)[0]


def test_the_recipe_alone(tmp_path: Path) -> None:
    """The two runs that differ in nothing else are to be compared next."""
    history = make(tmp_path, [A, A, A], [0, (2, "PLUS = 0.0\n")])
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD", recipe="gqa-cpu"))
    assert result.carried is not None
    assert result.carried.axes == (Axis.RECIPE,)
    assert next_commands(result)[0].startswith("lossbisect compare ")
    assert next_commands(result)[0].count("console.log") == 2


def test_only_together(tmp_path: Path) -> None:
    """Each half alone keeps the good curve: the combination is named, with a search for each half."""
    history = make(tmp_path, [A, A, B], [(0, "TIMES = 0.0\n"), (2, "TIMES = 1.0\n")])
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))
    assert result.answer is AxesAnswer.FOUND
    assert result.reason.startswith("Only the combination of Megatron-Core and Megatron Bridge")
    assert f"--bridge {history.bridge[1]}" in next_commands(result)[0]
    assert len(next_commands(result)) == 2


def test_no_difference(tmp_path: Path) -> None:
    """Equal curves need no mixes."""
    history = make(tmp_path, [A, A, A], [0, (2, "PLUS = 0.0\n")])
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))
    assert (result.answer, len(result.runs), result.carried) == (AxesAnswer.SAME, 3, None)
    assert next_commands(result) == ()


def test_a_mix_that_cannot_run(tmp_path: Path) -> None:
    """What can't be told isn't."""
    history = make(tmp_path, [A, A, B], [(0, "AT_MOST = 10.3\n"), (2, "NEEDS = 10.5\n")])
    result = ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))
    assert result.answer is AxesAnswer.UNDECIDED
    assert "can't be told" in result.reason


def test_set_ups_that_are_the_same(tmp_path: Path) -> None:
    """Nothing differs: nothing is run."""
    history = make(tmp_path, [A, A], [0])
    with pytest.raises(GitError, match="the two set-ups are the same"):
        ask(history, SetupNames(), SetupNames(bridge="HEAD"))
    assert not (tmp_path / "runs").exists()


def test_a_set_up_that_does_not_run(tmp_path: Path) -> None:
    """An end that fails is an error with its log."""
    history = make(tmp_path, [A, A, B], [0, (2, "AT_MOST = 10.3\n")])
    with pytest.raises(EndpointError, match=r"The bad set-up .* can't be judged: .*console\.log"):
        ask(history, SetupNames(bridge="HEAD~1"), SetupNames(bridge="HEAD"))


def test_a_megatron_lm_checkout(tmp_path: Path) -> None:
    """Without Bridge the commit and the recipe may differ."""
    shas = make_history(tmp_path / "mlm", [A, B])
    result = compare_setups(
        tmp_path / "mlm", SetupNames(mcore="HEAD~1"), SetupNames(recipe="gqa-cpu"), out=tmp_path / "runs",
        training=Training(python=Path(sys.executable)),
    )  # fmt: skip
    assert result.axes == (Axis.MCORE, Axis.RECIPE)
    assert result.carried is not None
    assert result.carried.axes == (Axis.MCORE, Axis.RECIPE)
    assert result.good.mcore == shas[0]
    assert "--bridge" not in next_commands(result)[0]


def run(*arguments: str) -> int:
    """The exit code of ``lossbisect axes``."""
    with pytest.raises(SystemExit) as caught:
        main(["axes", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer goes to stdout with exit code 0, progress to stderr; equal set-ups are 1, wrong usage is 2."""
    history = make(tmp_path, [A, A, B], [0, (2, "PLUS = 0.0\n")])
    words = ["--repo", str(history.repo), "--good-bridge", "HEAD~1", "--bad-bridge", "HEAD"]
    assert run(*words) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("CARRIED: Megatron-Core carries the difference by itself.")
    assert "next: lossbisect bisect" in shown.out
    assert "Run 4: the good set-up with Megatron-Core of the bad one" in shown.err
    assert run(*words, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["carried_by"], report["is_alone"], len(report["runs"])) == (["mcore"], True, 4)
    assert run(*words, "--bad", history.mcore[1]) == 1
    assert capsys.readouterr().out.startswith("NO DIFFERENCE: ")
    assert run("--repo", str(history.repo)) == 2
    assert "the two set-ups are the same" in capsys.readouterr().err
