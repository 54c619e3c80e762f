"""A command of the user's: what it is told, when its log counts, and what proves the code."""

import sys
from pathlib import Path

import pytest

from lossbisect.errors import TrainerError
from lossbisect.train import read_run
from lossbisect.train.executors import ExecutorName, ExecutorOptions, open_executor
from lossbisect.train.executors.command import command_words
from lossbisect.train.types import Outcome, RunRecord

from .conftest import COMMAND, make_history, spec_at


def _run(folder: Path, command: str) -> RunRecord:
    executor = open_executor(ExecutorOptions(name=ExecutorName.COMMAND, command=command, retries=0, folder=folder))
    record = executor.run(spec_at(folder / "m l m"), folder / "o u t")
    executor.close()
    return record


def test_its_log_is_the_curve(tmp_path: Path) -> None:
    """A command that ends well gives the losses that it printed, the tree's commit, and says how that is known."""
    shas = make_history(tmp_path / "m l m", [0.0])
    record = _run(tmp_path, COMMAND)
    assert record.outcome is Outcome.FINISHED, record.reason
    assert "from its tree alone" in record.reason
    assert record.provenance is not None
    assert (record.provenance.mcore_commit, record.provenance.is_clean) == (shas[0], True)
    assert read_run(record).iterations["lm_loss"].to_list()[:2] == [10.0, 5.0]


def test_placeholders_are_words(tmp_path: Path) -> None:
    """Folders with blanks stay one word, and ${names} of the shell stay the shell's."""
    make_history(tmp_path / "m l m", [0.0])
    script = "import os, sys; print(sys.argv[1:], os.getcwd())"
    record = _run(
        tmp_path, f'{sys.executable} -c "{script}" {{commit}} {{worktree}} {{out}} {{iterations}} {{recipe}} ${{HOME}}'
    )
    words = record.console.read_text()
    assert record.spec.sources.mcore_commit is not None
    assert record.spec.sources.mcore_commit in words
    assert f"'{tmp_path / 'm l m'}', '{tmp_path / 'o u t'}', '10', 'vanilla-cpu', '${{HOME}}'] {tmp_path}" in words


@pytest.mark.parametrize(
    ("command", "outcome", "reason"),
    [
        (f"{sys.executable} -c 'print(1)' {{worktree}}", Outcome.FAILED, "no log"),
        (f"{sys.executable} -c 'raise KeyError(1)'", Outcome.FAILED, "KeyError: 1"),
        ("bash -c 'echo >> {worktree}/number.txt; cat log.txt'", Outcome.VOID, "changed while the command ran"),
        ("bash -c 'cat log.txt; : {iterations}'", Outcome.FAILED, "its log ends at iteration 2"),
        ("bash -c 'cat log.txt'", Outcome.FINISHED, "2 iterations"),
    ],
)
def test_what_a_log_is_worth(tmp_path: Path, command: str, outcome: Outcome, reason: str) -> None:
    """No rows, an error, a changed tree, too few iterations: none of them is a finished run."""
    make_history(tmp_path / "m l m", [0.0])
    (tmp_path / "log.txt").write_text(
        "".join(f" iteration {n:8d}/      10 | consumed samples: {n} | lm loss: 1.000000E+01 |\n" for n in (1, 2))
    )
    command = command.replace("{worktree}/number", '"{worktree}"/number')
    record = _run(tmp_path, command)
    assert record.outcome is outcome, record.reason
    assert reason in record.reason


@pytest.mark.parametrize(
    ("command", "message"),
    [("", "empty"), ("bash '", "split into words"), ("bash {worktre}", r"unknown placeholder \{worktre\}")],
)
def test_a_wrong_command_is_one_line(command: str, message: str) -> None:
    """What can't be a command is said before anything runs, with what is known."""
    with pytest.raises(TrainerError, match=message):
        command_words(command)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """A command that can't be started is an error of the set-up, no verdict."""
    make_history(tmp_path / "m l m", [0.0])
    with pytest.raises(TrainerError, match="no-such-program"):
        _run(tmp_path, "no-such-program {out}")
