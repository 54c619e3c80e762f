"""What is tried again, how often, and where it goes."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lossbisect.cause import Cause
from lossbisect.errors import RunCancelledError
from lossbisect.train.executors.base import OnLine, ShouldStop
from lossbisect.train.executors.retry import RetryingExecutor
from lossbisect.train.types import Outcome, RunRecord, RunSpec
from tests.bisect.support import make_record


class _Scripted:
    """Ends runs as told; None is a finished one."""

    slots = 1

    def __init__(self, causes: list[Cause | None]) -> None:
        self.causes: Iterator[Cause | None] = iter(causes)
        self.outs: list[str] = []

    def run(
        self,
        spec: RunSpec,  # noqa: ARG002
        out: Path,
        *,
        on_line: OnLine = None,  # noqa: ARG002
        should_stop: ShouldStop = None,  # noqa: ARG002
    ) -> RunRecord:
        self.outs.append(out.name)
        out.mkdir()
        cause = next(self.causes)
        return replace(
            make_record("a" * 40, out), outcome=Outcome.FINISHED if cause is None else Outcome.FAILED, cause=cause,
            reason="ECC",
        )  # fmt: skip

    def expect(self, spec: RunSpec) -> None: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


INFRASTRUCTURE, OWN, UNKNOWN = Cause.INFRASTRUCTURE, Cause.OWN, Cause.UNKNOWN


@pytest.mark.parametrize(
    ("causes", "runs", "cause"),
    [
        ([None], 1, None),
        ([INFRASTRUCTURE, None], 2, None),
        ([INFRASTRUCTURE, INFRASTRUCTURE, None], 3, None),
        ([INFRASTRUCTURE] * 4, 3, INFRASTRUCTURE),
        ([OWN, None], 1, OWN),
        ([UNKNOWN, None], 1, UNKNOWN),
        ([INFRASTRUCTURE, OWN, None], 2, OWN),
    ],
)
def test_only_the_infrastructure_is_tried_again(
    tmp_path: Path, causes: list[Cause | None], runs: int, cause: Cause | None
) -> None:
    """Twice more at most, each time in a folder of its own beside the first; a run's own failure stands at once."""
    scripted, said = _Scripted(causes), list[str]()
    executor = RetryingExecutor(scripted, retries=2, wait_s=0.0)
    record = executor.run(make_record("a" * 40, tmp_path).spec, tmp_path / "out", on_line=said.append)
    assert scripted.outs == ["out", "out.attempt-2", "out.attempt-3"][:runs]
    assert (record.cause, record.out.name) == (cause, scripted.outs[-1])
    assert len(said) == runs - 1


def test_an_earlier_attempt_is_never_written_into(tmp_path: Path) -> None:
    """What a killed process has left beside the run stays as it is."""
    (tmp_path / "out.attempt-2").mkdir()
    scripted = _Scripted([INFRASTRUCTURE, None])
    RetryingExecutor(scripted, retries=1, wait_s=0.0).run(make_record("a" * 40, tmp_path).spec, tmp_path / "out")
    assert scripted.outs == ["out", "out.attempt-3"]


def test_a_wait_can_be_cancelled(tmp_path: Path) -> None:
    """Cancelling between two attempts ends the waiting at once."""
    executor = RetryingExecutor(_Scripted([INFRASTRUCTURE] * 2), retries=1, wait_s=600.0)
    threading.Timer(0.1, executor.cancel).start()
    started_s = time.monotonic()
    with pytest.raises(RunCancelledError):
        executor.run(make_record("a" * 40, tmp_path).spec, tmp_path / "out")
    assert time.monotonic() - started_s < 60
