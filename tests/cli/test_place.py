"""Options that say where runs take place, the plan, and the question before an expensive run."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lossbisect.bisect.asked import executor_for
from lossbisect.bisect.options import Regress, SearchOptions
from lossbisect.cli import cli
from lossbisect.cli.place import Place, place_options
from lossbisect.train.executors.options import ExecutorName, ExecutorOptions
from lossbisect.train.types import Lane
from tests.bisect.support import make_history, snapshot


def _place(*words: str) -> Place:
    found: list[Place] = []

    @click.command()
    @place_options
    def command(place: Place) -> None:
        found.append(place)

    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), None),
        (("--jobs", "3"), {"name": ExecutorName.LOCAL, "jobs": 3}),
        (
            ("--command", "bash x {out}"),
            {"name": ExecutorName.COMMAND, "command": "bash x {out}", "folder": Path.cwd()},
        ),
        (
            ("--sbatch-option", "partition=a100", "--sbatch-option", "--exclusive"),
            {"name": ExecutorName.SLURM, "sbatch_options": {"partition": "a100", "exclusive": ""}},
        ),
        (("--executor", "slurm", "--retries", "0"), {"name": ExecutorName.SLURM, "retries": 0}),
    ],
)
def test_options_name_the_executor(words: tuple[str, ...], expected: dict[str, Any] | None) -> None:
    """An option of one executor alone is enough; without any the command's own default counts."""
    assert _place(*words).given == (None if expected is None else ExecutorOptions(**expected))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--executor", "local", "--command", "x"), "--command goes with --executor command"),
        (("--command", "x", "--sbatch-option", "a=b"), "--sbatch-option goes with --executor slurm"),
        (("--executor", "command"), "needs --command"),
        (("--jobs", "0"), "0"),
        (("--sbatch-option", "=x"), "no option of sbatch"),
    ],
)
def test_what_does_not_go_together(words: tuple[str, ...], message: str) -> None:
    """Wrong usage is told by the option that is wrong."""
    with pytest.raises(click.UsageError) as error:
        _place(*words)
    assert message in error.value.format_message()


@pytest.mark.parametrize(
    "options",
    [
        ExecutorOptions(),
        ExecutorOptions(name=ExecutorName.COMMAND, command="bash x {out}", folder=Path("/a b")),
        ExecutorOptions(name=ExecutorName.SLURM, jobs=4, sbatch_template=Path("/t"), sbatch_options={"a": "b"}),
    ],
)
def test_options_survive_the_journal(options: ExecutorOptions) -> None:
    """What is written down is read back the same."""
    assert ExecutorOptions.from_json(options.to_json()) == options


def _bisect(repo: Path, work: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(
        cli, ["bisect", "--repo", str(repo), "--good", "HEAD~7", "--bad", "HEAD", "--work-dir", str(work), *words]
    )
    return result.exit_code, result.output


def test_a_plan_does_nothing(tmp_path: Path) -> None:
    """Runs, time, GPU hours and the command are told; nothing is written, in the checkout or elsewhere."""
    make_history(tmp_path / "mlm", [10.0] * 8)
    before = snapshot(tmp_path)
    code, said = _bisect(tmp_path / "mlm", tmp_path / "work", "--command", "bash train.sh {worktree}", "--plan")
    assert code == 0
    assert "7 commits" in said
    assert "about 9" in said
    assert "no earlier run" in said
    assert "bash train.sh {worktree}" in said
    assert snapshot(tmp_path) == before


def test_an_expensive_run_is_asked_for(tmp_path: Path) -> None:
    """On GPUs, with nobody to ask and no --yes, nothing is run: exit 2 with the cost and what to do."""
    make_history(tmp_path / "mlm", [10.0] * 8)
    code, said = _bisect(tmp_path / "mlm", tmp_path / "work", "--command", "true", "--lane", "cuda")
    assert code == 2
    assert "9 runs, at most 4.5 GPU hours: more than --max-gpu-hours 1" in said
    assert "--yes" in said
    assert not (tmp_path / "work").exists()


def test_a_cheap_run_is_not_asked_for(tmp_path: Path) -> None:
    """With a short time limit, a higher one for hours, or --yes it starts; no trainer, so the good end fails."""
    make_history(tmp_path / "mlm", [10.0] * 8)
    for words in (("--timeout", "60"), ("--yes",), ("--max-gpu-hours", "5")):
        code, said = _bisect(tmp_path / "mlm", tmp_path / "work", "--command", "true", "--lane", "cuda", *words)
        assert code != 0
        assert "GPU hours" not in said
        assert "(good end)" in said


def test_how_many_run_at_once_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot for every core of a run on this machine's CPU lane; one on GPUs, and where runs are timed."""
    monkeypatch.setattr("lossbisect.train.executors.options.usable_cores", lambda: 3)
    loss, timed = SearchOptions(), SearchOptions(regress=Regress.THROUGHPUT)
    assert executor_for(None, Lane.CPU, 1, loss).slots == 3
    assert executor_for(None, Lane.CPU, 2, loss).slots == 1
    assert executor_for(None, Lane.CUDA, 1, loss).slots == 1
    assert executor_for(None, Lane.CPU, 1, timed).slots == 1
    assert executor_for(ExecutorOptions(jobs=2), Lane.CPU, 1, timed).slots == 2
