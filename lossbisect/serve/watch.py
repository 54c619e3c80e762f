"""Bisects looked at from outside, again and again: how each stands, what runs now, and what its answer is."""

import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lossbisect.bisect.culprit import BisectResult
from lossbisect.bisect.recall import Unfinished, recall_bisect
from lossbisect.bisect.state import is_held, load_journal
from lossbisect.bisect.types import BisectPlan, BisectStep
from lossbisect.errors import LossbisectError
from lossbisect.train.progress import RunProgress

__all__ = ["Glance", "Slot", "Stamp", "Watch", "run_name"]

type Stamp = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of each stage's journal: another one, other content."""
_RUN = re.compile(r"(?P<name>\d+-(?P<role>[a-z-]+)-(?P<commit>[0-9a-f]{7,40}))(?:\.(?P<attempt>\d+))?")
_TAIL_BYTES = 32_768
_LEAST_PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A run that goes on now.

    Attributes:
        name: As `run_name` of a finished one.
        console: Its console.
        commit: The commit's first digits.
        role: Why it runs.
        progress: Iteration and loss of its newest row; ``starting`` before the first one.
        silent_s: Time since its last sign of life, seconds.
    """

    name: str
    console: Path
    commit: str
    role: str
    progress: str
    silent_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Glance:
    """A bisect as it stands.

    Attributes:
        id: Its name.
        directory: Its folder, that of its first stage.
        stages: The folders of all its stages.
        stamp: Of its journals.
        plan: What was asked; None where the journal can't be read.
        steps: Finished runs of all stages.
        trouble: Why a journal can't be read; empty where it can.
        is_aborted: It was given up.
    """

    id: str
    directory: Path
    stages: tuple[Path, ...]
    stamp: Stamp
    plan: BisectPlan | None
    steps: tuple[BisectStep, ...]
    trouble: str
    is_aborted: bool


@dataclass(slots=True)
class Watch:
    """The bisects of a cache directory. Journals are read again only when they have changed. Safe from several threads.

    Attributes:
        root: The cache directory.
        clock: Seconds since the epoch.
    """

    root: Path
    clock: Callable[[], float] = time.time
    _glances: dict[str, Glance] = field(default_factory=dict)
    _answers: dict[str, tuple[Stamp, BisectResult | Unfinished | str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _recalling: threading.Lock = field(default_factory=threading.Lock)
    _wanted: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)
    _asked: dict[str, Stamp] = field(default_factory=dict)
    _worker: threading.Thread | None = None

    def ids(self) -> list[str]:
        """Every bisect, the newest first."""
        names = (path.parent.name for path in (self.root / "bisects").glob("*/journal.ndjson"))
        return sorted((name for name in names if "." not in name), reverse=True)  # later stages are their first one's

    def glance(self, name: str) -> Glance | None:
        """How a bisect stands; None if there is none of that name."""
        if name not in self.ids():
            return None
        later = (path.parent for path in (self.root / "bisects").glob(f"{name}.*/journal.ndjson"))
        stages = (self.root / "bisects" / name, *sorted(later, key=_stage_of))
        try:
            stamp = tuple(_stamp(stage) for stage in stages)
            with self._lock:
                known = self._glances.get(name)
            if known is None or known.stamp != stamp:
                known = _glance(stages, stamp)
                with self._lock:
                    self._glances[name] = known
        except OSError:
            return None
        return known

    def is_running(self, name: str) -> bool:
        """Whether a process works on it now."""
        try:
            return is_held(self.root / "bisects" / name)
        except OSError:  # somebody else's folder: its lock can't be asked
            return False

    def slots(self, bisect: Glance) -> tuple[Slot, ...]:
        """What runs now: the folders of runs that aren't in the journal, unless they have been silent too long.

        A killed process leaves such a folder too; the same run begun anew has a later one, and that one counts. So does
        a run that was given up since its result wasn't needed any more: of more folders than there are slots those
        with the newest signs of life count, and none that is silent for twice as long as any run took.
        """
        done = {run_name(step.record.out) for step in bisect.steps}
        plan = bisect.plan
        if plan is None:
            return ()
        took_s = [step.record.duration_s for step in bisect.steps if step.record.stored_as is None]
        longest_s = min(plan.timeout_s, max(_LEAST_PATIENCE_S, 2 * max(took_s))) if took_s else plan.timeout_s
        latest: dict[str, tuple[int, Path]] = {}
        for folder in (each for stage in bisect.stages for each in stage.glob("runs/*") if run_name(each) not in done):
            if (named := _RUN.fullmatch(folder.name)) is not None:
                attempt, name = int(named["attempt"] or 1), f"{_stage_of(folder.parents[1])} {named['name']}"
                if attempt > latest.get(name, (0, folder))[0]:
                    latest[name] = attempt, folder
        found = (self._slot(folder) for _, (_, folder) in sorted(latest.items()))
        alive = (slot for slot in found if slot is not None and slot.silent_s <= longest_s)
        newest = sorted(alive, key=lambda slot: slot.silent_s)[: plan.executor.slots]
        return tuple(sorted(newest, key=lambda slot: slot.name))

    def recall(self, bisect: Glance) -> BisectResult | Unfinished | str:
        """Its answer, or how far it is; a sentence where neither can be told. May take seconds the first time."""
        with self._recalling:  # one at a time: it is work for both cores
            known = self._known(bisect)
            if known is not None:
                return known
            try:
                found: BisectResult | Unfinished | str = recall_bisect(bisect.id, work_dir=self.root)
            except (LossbisectError, OSError) as error:
                found = str(error)
            with self._lock:
                self._answers[bisect.id] = bisect.stamp, found
            return found

    def answer(self, bisect: Glance) -> BisectResult | Unfinished | str | None:
        """As `recall`, but at once: None while it isn't known yet. It is looked up in the background then."""
        known = self._known(bisect)
        if known is None and self._asked.get(bisect.id) != bisect.stamp:
            self._asked[bisect.id] = bisect.stamp
            self._wanted.put(bisect.id)
            with self._lock:
                if self._worker is None:
                    self._worker = threading.Thread(target=self._work, daemon=True)
                    self._worker.start()
        return known

    def _known(self, bisect: Glance) -> BisectResult | Unfinished | str | None:
        with self._lock:
            stamp, found = self._answers.get(bisect.id, (None, None))
        return found if stamp == bisect.stamp else None

    def _work(self) -> None:
        while True:
            bisect = self.glance(self._wanted.get())
            if bisect is not None:
                self.recall(bisect)

    def _slot(self, folder: Path) -> Slot | None:
        named = _RUN.fullmatch(folder.name)
        if named is None:
            return None
        console = folder / "console.log"
        try:
            last = (console if console.exists() else folder).stat().st_mtime
        except OSError:
            return None
        lines = _last_lines(console)
        return Slot(
            name=run_name(folder),
            console=console,
            commit=named["commit"],
            role=named["role"].replace("-", " "),
            progress=_progress(lines),
            silent_s=max(0.0, self.clock() - last),
        )


def run_name(out: Path) -> str:
    """A run's name in addresses, from its folder: the number of its stage, and the folder's own name."""
    return f"{_stage_of(out.parents[1])}.{out.name}"


def _stage_of(stage: Path) -> int:
    number = stage.name.partition(".")[2]
    return int(number) if number.isascii() and number.isdigit() else 1


def _stamp(stage: Path) -> tuple[str, int, int]:
    status = (stage / "journal.ndjson").stat()
    return stage.name, status.st_size, status.st_mtime_ns


def _glance(stages: tuple[Path, ...], stamp: Stamp) -> Glance:
    plan: BisectPlan | None = None
    steps: list[BisectStep] = []
    trouble, is_aborted = "", False
    for stage in stages:
        path = stage / "journal.ndjson"
        content = path.read_text(encoding="utf-8", errors="replace")
        is_aborted = is_aborted or '"kind": "abort"' in content
        try:
            asked, done = load_journal(path, content.split("\n")[:-1])
        except LossbisectError as error:
            trouble = trouble or str(error)
            continue
        plan = plan or asked
        steps += done
    return Glance(
        id=stages[0].name,
        directory=stages[0],
        stages=stages,
        stamp=stamp,
        plan=plan,
        steps=tuple(steps),
        trouble=trouble,
        is_aborted=is_aborted,
    )


def _last_lines(console: Path) -> Sequence[str]:
    try:
        with console.open("rb") as file:
            file.seek(max(0, console.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ()


def _progress(lines: Sequence[str]) -> str:
    for line in reversed(lines):
        told = RunProgress().read(line)
        if told is not None:
            return told
    return "starting"
