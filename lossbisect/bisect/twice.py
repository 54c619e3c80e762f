"""Each commit run twice, as one run: whether it repeats itself is asked of the two."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lossbisect.bisect.events import Runner
from lossbisect.parsers.runlog import RunLog
from lossbisect.train.types import Outcome, RunRecord

__all__ = ["PairRunner", "again_of"]

_AGAIN = "again"
"""Folder of the second run, in the first one's."""


class PairRunner:
    """Runs each commit twice; the record is the first run's, or that of the one that didn't finish."""

    def __init__(self, runner: Runner) -> None:
        """Run by another runner."""
        self._runner = runner

    def run(
        self,
        commit: str,
        out: Path,
        on_line: Callable[[str], None],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """As `Runner.run`, twice; the second run's folder is ``again`` in ``out``."""
        numbers = (None, None) if repeat is None else (2 * repeat, 2 * repeat + 1)
        records: list[RunRecord] = []
        for number, folder in zip(numbers, (out, out / _AGAIN), strict=True):
            record = self._runner.run(commit, folder, on_line, repeat=number, should_stop=should_stop, without=without)
            records.append(record)
            if record.outcome is not Outcome.FINISHED:
                return replace(record, duration_s=sum(each.duration_s for each in records))
        # Only a pair that is wholly from the run store has cost nothing.
        stored_as = records[0].stored_as if records[1].stored_as else None
        return replace(records[0], duration_s=sum(each.duration_s for each in records), stored_as=stored_as)

    def read(self, record: RunRecord) -> RunLog:
        """The curves of a run."""
        return self._runner.read(record)


def again_of(record: RunRecord) -> RunRecord | None:
    """The second run of a pair; None if one of them didn't finish."""
    return replace(record, out=record.out / _AGAIN) if record.outcome is Outcome.FINISHED else None
