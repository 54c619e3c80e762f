"""Which line of a console says why a run ended, and what is to blame."""

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lossbisect.parsers.failure_kinds import FAILURE_KINDS
from lossbisect.train.executors import ExecutorName, ExecutorOptions, open_executor
from lossbisect.train.failure import Cause, failure_in, failure_of, last_error
from lossbisect.train.types import Lane, Outcome, RunSpec, Sources, TrainerName

TRACEBACK = "Traceback (most recent call last):\n"
FAILURES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("failures.toml").read_text())["failure"]
ROW = " iteration {:8d}/      10 | consumed samples: 8 | lm loss: {:.6E} | grad norm: 1.0 |"


def _console(failure: dict[str, Any]) -> str:
    """Three iterations whose loss is far from anybody's, and then the failure."""
    return "\n".join([*(ROW.format(number, 99.0 + number) for number in (1, 2, 3)), failure["text"].lstrip("\n")])


@pytest.mark.parametrize("failure", FAILURES, ids=[f"{number}-{row['kind']}" for number, row in enumerate(FAILURES)])
def test_real_failures_have_their_kind_and_cause(tmp_path: Path, failure: dict[str, Any]) -> None:
    """Each real text is told apart: the run's own failure, the infrastructure's, or nobody's for sure."""
    console = tmp_path / "console.log"
    console.write_text(_console(failure), encoding="utf-8")
    found = failure_of(console, failure.get("exit", 1))
    assert (found.kind, found.cause) == (failure["kind"], Cause(failure["cause"]))
    assert 0 < len(found.text) <= 300


def test_there_are_enough_real_failures() -> None:
    """Thirty at least, of each cause some, and nearly every kind of the table."""
    assert len(FAILURES) >= 30
    assert {row["cause"] for row in FAILURES} == {cause.value for cause in Cause}
    assert len({kind.name for kind in FAILURE_KINDS} - {row["kind"] for row in FAILURES}) <= 1


def test_no_failure_is_a_loss_break(tmp_path: Path) -> None:
    """A run that ends in any of them is a failed run, whatever losses it had printed: nothing that can be judged."""
    script = tmp_path / "fail.py"
    script.write_text(
        "import os, sys\n"
        "sys.stdout.write(open(sys.argv[1]).read()); sys.stdout.flush()\n"
        "code = int(sys.argv[2])\n"
        "os.kill(os.getpid(), -code) if code < 0 and code != -15 else os._exit(code if code > 0 else 1)\n"
    )
    for number, failure in enumerate(FAILURES):
        text = tmp_path / f"{number}.txt"
        text.write_text(_console(failure), encoding="utf-8")
        words = f"{sys.executable} -SE {script} {text} {failure.get('exit', 1)}"
        executor = open_executor(ExecutorOptions(name=ExecutorName.COMMAND, command=words, retries=0))
        spec = RunSpec(
            sources=Sources(), recipe="vanilla-cpu", trainer=TrainerName.MLM, lane=Lane.CPU, python=Path(sys.executable)
        )
        record = executor.run(spec, tmp_path / f"run-{number}")
        executor.close()
        assert record.outcome is Outcome.FAILED, failure["seen"]
        assert record.cause is not None


def test_the_last_error_counts() -> None:
    """Of two tracebacks the later one ended the run."""
    console = (
        f"{TRACEBACK}  File x\nImportError: optional\nlater\n{TRACEBACK}  File y\nmegatron.core.E.SomeError: why\n"
    )
    assert last_error(console) == "megatron.core.E.SomeError: why"


def test_a_rank_is_named_rather_than_its_launcher() -> None:
    """Of several ranks the failing rank speaks, without its prefix, not its launcher."""
    console = (
        f"[rank1]: {TRACEBACK}[rank1]:   File x\n[rank1]: AssertionError: sequence parallel not supported\n"
        f"{TRACEBACK}  File run.py\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    assert last_error(console) == "AssertionError: sequence parallel not supported"
    found = failure_in(console)
    assert found is not None
    assert (found.text, found.cause) == ("AssertionError: sequence parallel not supported", Cause.OWN)


def test_a_line_that_only_mentions_an_error_is_none() -> None:
    """Text outside a traceback is no reason, however it looks, and an empty console has none."""
    assert last_error("ValueError: printed by somebody\niteration 1\n") is None
    assert last_error("") is None


def test_a_long_message_is_cut() -> None:
    """A reason stays one line of at most 300 characters."""
    reason = last_error(f"{TRACEBACK}KeyError: {'x' * 1000}\n")
    assert reason is not None
    assert len(reason) == 300


def test_a_machine_that_dies_explains_all_else() -> None:
    """The run's own traceback that follows from a broken GPU or a full disk doesn't make it the run's own failure."""
    console = f"OSError: [Errno 28] No space left on device\n{TRACEBACK}  File x\nEOFError: Ran out of input\n"
    found = failure_in(console)
    assert found is not None
    assert (found.kind, found.cause) == ("disk-full", Cause.INFRASTRUCTURE)


def test_a_warning_explains_nothing() -> None:
    """What torch warns of, such as connections that others have closed, isn't why a run failed."""
    warning = "[rank3]:[W1006 04:18:02.1 TCPStore.cpp:125] [c10d] recvValue failed: Connection reset by peer\n"
    assert failure_in(warning) is None
    found = failure_in(f"{warning}{TRACEBACK}  File x\nKeyError: 'moe'\n{warning}")
    assert found is not None
    assert (found.text, found.cause) == ("KeyError: 'moe'", Cause.OWN)
