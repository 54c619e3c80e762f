"""Running through the store: what was run before isn't run again."""

import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lossbisect.errors import StoreError
from lossbisect.store.key import key_of
from lossbisect.store.store import RunStore
from lossbisect.store.types import NotStored, RunKey
from lossbisect.train.types import Outcome, RunRecord, RunSpec

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog
    from lossbisect.train.executors import Executor

__all__ = ["StoreUse", "StoredExecutor", "StoredRunner", "StoredRuns"]

type OnLine = Callable[[str], None]

_OURS = "[lossbisect] "


class StoreUse(StrEnum):
    """How a piece of work uses the run store."""

    NORMAL = "normal"
    """Take from it what it has, keep what is run."""
    FRESH = "fresh"
    """Run everything anew, and keep it."""
    OFF = "off"


class StoredRuns:
    """The runs of one piece of work, taken from the store where it has them. Safe from several threads.

    A repeat checks the runs before it. So once something was run anew, repeats are run anew too: two stored runs say
    nothing of whether the machine still gives what it gave when they were made.
    """

    def __init__(
        self,
        root: Path,
        use: StoreUse = StoreUse.NORMAL,
        *,
        with_failures: bool = True,
        has_run: bool = False,
        given: Iterable[str] = (),
    ) -> None:
        """Use the store of a cache directory.

        Args:
            root: The cache directory.
            use: How.
            with_failures: Take a commit's own failure from the store too.
            has_run: Something was run anew already, before a stop.
            given: Ids of the runs that were taken from the store before a stop.
        """
        self._store = RunStore(root)
        self._use = use
        self._with_failures = with_failures
        self._has_run = has_run
        self._given = set(given)
        self._failures: list[str] = []
        self._lock = threading.Lock()

    def get(
        self,
        spec: RunSpec,
        out: Path,
        run: Callable[[], RunRecord],
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        on_line: OnLine | None = None,
    ) -> RunRecord:
        """A run from the store, with its files in ``out``, or a new one, which is then kept.

        A store that fails costs time, not the answer: then everything is run.

        Args:
            spec: The run. Its trees need not be there.
            out: Its own folder.
            run: Runs it into that folder.
            repeat: How often this piece of work asked for the same run before; None: it must be run now.
            should_stop: Whether the run may be ended, asked now and then while it goes on; raises if nobody needs it
                any more. A run that was ended so far will do if this one would be too.
            on_line: Told what a reader should know, such as why a run isn't kept.

        Raises:
            RecipeError: There is no such recipe.
            TrainerError: The interpreter can't be started.
        """
        if self._use is StoreUse.OFF:
            return run()
        key = key_of(spec, self._store.root)
        if isinstance(key, NotStored):
            if spec.sources.is_ours:
                _say(on_line, f"Not kept in the run store: {key.reason}.")
            return run()
        known = self._recall(key, repeat, out, should_stop, on_line)
        if known is not None:
            return _as_asked(known, spec)
        record = run()
        with self._lock:
            self._has_run = True  # not before: a run that nobody waited for was none
        self._keep(key, record, on_line)
        return record

    def commits(self, spec: RunSpec) -> Sequence[Collection[str]]:
        """Full SHAs of Megatron-Core's commits of which the store has a run like this one; none if it can't be used.

        Returns:
            Groups: first those whose run a search cut short, since a run that went to its end may be a confirmation.
        """
        if self._use is not StoreUse.NORMAL:
            return ()
        key = key_of(spec, self._store.root)
        try:
            return () if isinstance(key, NotStored) else self._store.commits(key)
        except StoreError:
            return ()

    def take_back_failures(self) -> None:
        """Forget the failures that were kept: what looked like the commits' own was the machine's."""
        with self._lock:
            names, self._failures = self._failures, []
        if names:
            with suppress(StoreError):  # a store that can't be used isn't asked for them either
                self._store.remove(run for run in self._store.runs() if run.id in names)

    def _recall(
        self,
        key: RunKey,
        repeat: int | None,
        out: Path,
        should_stop: Callable[[], bool] | None,
        on_line: OnLine | None,
    ) -> RunRecord | None:
        if repeat is None or self._use is StoreUse.FRESH:
            return None
        with self._lock:
            if repeat > 0 and self._has_run:
                return None
            try:
                known = self._recall_cut(key, out, should_stop) if should_stop is not None else None
                if known is None:
                    known = self._store.recall(key, out, but=self._given, with_failures=self._with_failures)
            except StoreError as error:
                _say(on_line, str(error))
                return None
            if known is not None and known.stored_as is not None:
                self._given.add(known.stored_as)
            return known

    def _recall_cut(self, key: RunKey, out: Path, should_stop: Callable[[], bool]) -> RunRecord | None:
        known = self._store.recall(key, out, but=self._given, is_cut=True)
        if known is None or should_stop():
            return known
        shutil.rmtree(out)
        should_stop()  # whoever watches the values sees that they are gone
        return None

    def _keep(self, key: RunKey, record: RunRecord, on_line: OnLine | None) -> None:
        try:
            kept = self._store.add(key, record)
        except StoreError as error:
            _say(on_line, str(error))
            return
        if isinstance(kept, NotStored):
            _say(on_line, f"Not kept in the run store: {kept.reason}.")
            return
        with self._lock:
            self._given.add(kept)
            if record.outcome is Outcome.FAILED:
                self._failures.append(kept)


class StoredExecutor:
    """An executor in whose place the store answers where it can."""

    def __init__(self, executor: "Executor", runs: StoredRuns) -> None:
        """Wrap an executor, which is closed with this one."""
        self._executor = executor
        self._runs = runs

    @property
    def slots(self) -> int:
        """Those of the executor."""
        return self._executor.slots

    def run(
        self,
        spec: RunSpec,
        out: Path,
        *,
        on_line: OnLine | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> RunRecord:
        """As `Executor.run`, or a run from the store."""
        return self._runs.get(
            spec, out, lambda: self._executor.run(spec, out, on_line=on_line, should_stop=should_stop), on_line=on_line
        )

    def cancel(self) -> None:
        """As `Executor.cancel`."""
        self._executor.cancel()

    def close(self) -> None:
        """As `Executor.close`."""
        self._executor.close()


class _Runner(Protocol):
    """What runs a commit: `lossbisect.bisect.events.Runner`, as far as it's needed here."""

    def run(
        self,
        commit: str,
        out: Path,
        on_line: OnLine,
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord: ...

    def read(self, record: RunRecord) -> "RunLog": ...


class StoredRunner:
    """A runner of a bisect's commits in whose place the store answers, without a checkout, where it can."""

    def __init__(self, runner: _Runner, runs: StoredRuns, spec_of: Callable[[str, str | None], RunSpec]) -> None:
        """Wrap a runner.

        Args:
            runner: Runs what isn't stored.
            runs: The runs of this bisect.
            spec_of: What the runner would run for a commit, and one that is taken back on top of it.
        """
        self._runner = runner
        self._runs = runs
        self._spec_of = spec_of

    def run(
        self,
        commit: str,
        out: Path,
        on_line: OnLine,
        *,
        repeat: int | None = 0,
        should_stop: Callable[[], bool] | None = None,
        without: str | None = None,
    ) -> RunRecord:
        """As `Runner.run`, or a run from the store."""
        record = self._runs.get(
            self._spec_of(commit, without),
            out,
            lambda: self._runner.run(commit, out, on_line, repeat=repeat, should_stop=should_stop, without=without),
            repeat=repeat,
            should_stop=should_stop,
            on_line=on_line,
        )
        if repeat is None and record.outcome is Outcome.FAILED:
            self._runs.take_back_failures()
        return record

    def read(self, record: RunRecord) -> "RunLog":
        """The run's curves."""
        return self._runner.read(record)


def _as_asked(record: RunRecord, spec: RunSpec) -> RunRecord:
    """A stored run as the answer to this spec: the same code may stand for another commit than when it was run."""
    sources = replace(record.spec.sources, stands_for=spec.sources.stands_for)
    return replace(record, spec=replace(record.spec, sources=sources))


def _say(on_line: OnLine | None, text: str) -> None:
    if on_line is not None:
        on_line(_OURS + text)
