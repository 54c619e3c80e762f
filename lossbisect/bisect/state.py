"""A bisect on disk: a journal of finished runs that outlives the process.

``<work dir>/bisects/<id>/journal.ndjson`` holds one JSON object a line: the plan first, then each finished run with its
verdict. A line is on the disk before the next run starts, so after a kill at any moment no finished run is repeated. A
last line without its end is what a kill leaves behind: it is dropped. Anything else that can't be read is an error.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

from lossbisect import __version__
from lossbisect.bisect.options import SearchOptions
from lossbisect.bisect.scope import Scope, Stage
from lossbisect.bisect.types import BisectPlan, BisectStep, CommitVerdict, Role
from lossbisect.errors import StateError
from lossbisect.plain_values import mapping_of, number_of, sequence_of, string_or_none
from lossbisect.train import cache_directory
from lossbisect.train.executors.options import ExecutorOptions
from lossbisect.train.records import record_from_json, record_to_json
from lossbisect.train.types import Lane, Outcome, TrainerName

__all__ = [
    "Journal",
    "find_bisect",
    "is_held",
    "load_journal",
    "plan_to_json",
    "record_from_json",
    "record_to_json",
    "step_to_json",
    "work_root",
]

SCHEMA_VERSION = 2


def work_root(work_dir: Path | None) -> Path:
    """Where bisects live: ``work_dir``, or the cache directory that $LOSSBISECT_CACHE_DIR overrides."""
    return (work_dir or cache_directory()).expanduser().absolute()


def find_bisect(root: Path, bisect_id: str | None, repo: Path | None) -> str:
    """The id to go on with: the one given, or else the latest bisect of a checkout.

    Raises:
        StateError: There is none.
    """
    folder = root / "bisects"
    known = sorted(path.parent.name for path in folder.glob("*/journal.ndjson"))
    if bisect_id is not None:
        if bisect_id not in known:
            shown = f"Known: {', '.join(known[-5:])}." if known else "There are none yet."
            raise StateError(f"{folder}: no bisect '{bisect_id}'. {shown}")
        return bisect_id
    for name in reversed(known):
        path = folder / name / "journal.ndjson"
        first = folder / name.partition(".")[0] / "journal.ndjson"
        is_given_up = any(b'"kind": "abort"' in each.read_bytes() for each in (path, first) if each.exists())
        if (repo is None or _repo_of(path) == str(repo)) and not is_given_up:
            return name
    of = "" if repo is None else f" of {repo}"
    raise StateError(f"{folder}: there is no bisect{of}, or all were given up. Start one: lossbisect bisect")


def _repo_of(path: Path) -> object:
    """The checkout that a journal belongs to, or None if its first line can't be read."""
    lines = _whole_lines(path.read_bytes())
    try:
        return mapping_of(_read_line(path, lines[0], 1)["plan"])["repo"]
    except (IndexError, KeyError, TypeError, StateError):
        return None


class Journal:
    """The finished runs of one bisect. One process holds it at a time.

    Attributes:
        directory: The bisect's own folder; its name is the bisect's id.
        plan: What was asked.
        steps: Finished runs, in the order in which they ran.
    """

    directory: Path
    plan: BisectPlan
    steps: list[BisectStep]

    def __init__(
        self, directory: Path, plan: BisectPlan, steps: Iterable[BisectStep], lock: IO[bytes], file: IO[bytes]
    ) -> None:
        """Use `create` or `open`."""
        self.directory = directory
        self.plan = plan
        self.steps = list(steps)
        self._lock = lock
        self._file = file
        self._given: set[Path] = set()

    @classmethod
    def create(cls, root: Path, plan: BisectPlan, name: str | None = None) -> Self:
        """Start a journal under a new id, or under one that was made up from another bisect's.

        Raises:
            StateError: The folder can't be written.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        directory = root / "bisects" / (name or f"{stamp}-{secrets.token_hex(2)}")
        try:
            directory.mkdir(parents=True, exist_ok=name is not None)
            lock = _lock(directory)
            file = (directory / "journal.ndjson").open("xb" if name is None else "wb")
        except OSError as error:
            raise StateError(f"{directory}: can't be written: {error}. Choose another --work-dir.") from error
        journal = cls(directory, plan, (), lock, file)
        header = {"kind": "plan", "schema_version": SCHEMA_VERSION, "lossbisect_version": __version__}
        journal._write({**header, "plan": plan_to_json(plan)})
        _sync_folder(directory)
        return journal

    @classmethod
    def open(cls, root: Path, bisect_id: str) -> Self:
        """Go on with a bisect.

        Raises:
            StateError: Its journal is missing, damaged, of another version, or held by another process.
        """
        directory = root / "bisects" / bisect_id
        path = directory / "journal.ndjson"
        if not path.exists():
            raise StateError(f"{path}: no such journal.")
        lock = _lock(directory)
        try:
            plan, steps, lines = _read_journal(path)
            file = path.open("r+b")
            file.truncate(sum(len(line) + 1 for line in lines))
            file.seek(0, os.SEEK_END)
        except BaseException:
            lock.close()
            raise
        return cls(directory, plan, steps, lock, file)

    @classmethod
    def look(cls, root: Path, bisect_id: str) -> Self:
        """Look at a bisect, whoever has it: nothing is locked, and nothing can be written.

        Raises:
            StateError: Its journal is missing, damaged, or of another version.
        """
        directory = root / "bisects" / bisect_id
        path = directory / "journal.ndjson"
        if not path.exists():
            raise StateError(f"{path}: no such journal.")
        plan, steps, _ = _read_journal(path)
        with path.open("rb") as unwritable:
            return cls(directory, plan, steps, unwritable, unwritable)

    @property
    def id(self) -> str:
        """The bisect's name."""
        return self.directory.name

    def find(self, role: Role, index: int) -> BisectStep | None:
        """The run of a commit in a role, or None.

        In the search a failed run is an answer (skip). An end, or a commit that is run again, is to be tried anew.
        """
        fitting = (step for step in self.steps if step.role is role and step.index == index)
        return next((step for step in fitting if role is Role.SEARCH or _says_something(step)), None)

    def append(self, step: BisectStep) -> None:
        """Write a finished run down; when this returns it is on the disk."""
        self._write({"kind": "step", **step_to_json(step)})
        self.steps.append(step)

    def forget(self, steps: Iterable[BisectStep], reason: str) -> None:
        """Take back runs that turned out to say nothing: they will be run again."""
        forgotten = list(steps)
        self._write({"kind": "forget", "reason": reason, "runs": [str(step.record.out) for step in forgotten]})
        self.steps = [step for step in self.steps if step not in forgotten]

    def abort(self) -> None:
        """Note that this bisect was given up."""
        self._write({"kind": "abort"})

    def run_directory(self, role: Role, commit: str) -> Path:
        """A folder for a run, not there yet and not given before: what a killed run left is never written into."""
        name = f"{len(self.steps) + 1:03d}-{role.name.lower().replace('_', '-')}-{commit[:10]}"
        runs = self.directory / "runs"
        attempt = 1
        while (path := runs / (f"{name}.{attempt}" if attempt > 1 else name)).exists() or path in self._given:
            attempt += 1
        self._given.add(path)
        return path

    def close(self) -> None:
        """Let another process have it."""
        self._file.close()
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, row: Mapping[str, object]) -> None:
        try:
            self._file.write(json.dumps(row, allow_nan=False).encode("ascii") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StateError(f"{self.directory / 'journal.ndjson'}: can't be written: {error}") from error


def _says_something(step: BisectStep) -> bool:
    """It finished, or failed in the very way that is looked for."""
    return step.record.outcome is Outcome.FINISHED or step.verdict is not CommitVerdict.SKIP


def step_to_json(step: BisectStep) -> dict[str, object]:
    """A step as plain values, for the journal and for reports."""
    return {
        "role": step.role.value,
        "index": step.index,
        "commit": step.commit,
        "verdict": step.verdict.value,
        "reason": step.reason,
        "is_bad_curve": step.is_bad_curve,
        "span": step.span,
        "record": record_to_json(step.record),
    }


def _pair(value: object) -> tuple[int, int]:
    first, last = sequence_of(value)
    return int(number_of(first)), int(number_of(last))


def _step_from_json(row: Mapping[str, object]) -> BisectStep:
    is_bad_curve = row["is_bad_curve"]
    span = row.get("span")
    return BisectStep(
        role=Role(str(row["role"])),
        index=int(number_of(row["index"])),
        commit=str(row["commit"]),
        verdict=CommitVerdict(str(row["verdict"])),
        reason=str(row["reason"]),
        is_bad_curve=None if is_bad_curve is None else bool(is_bad_curve),
        span=None if span is None else _pair(span),
        record=record_from_json(mapping_of(row["record"])),
    )


def plan_to_json(plan: BisectPlan) -> dict[str, object]:
    """A plan as plain values."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan)}
    plain = {name: str(value) if isinstance(value, str | Path) else value for name, value in values.items()}
    return {
        **plain,
        "executor": plan.executor.to_json(),
        "search": plan.search.to_json(),
        "scope": plan.scope.to_json(),
        "stage": plan.stage.to_json(),
    }


def _plan_from_json(row: Mapping[str, object]) -> BisectPlan:
    tolerance = row["tolerance"]
    return BisectPlan(
        repo=Path(str(row["repo"])),
        good=str(row["good"]),
        bad=str(row["bad"]),
        bridge_commit=string_or_none(row["bridge_commit"]),
        recipe=str(row["recipe"]),
        recipe_digest=string_or_none(row["recipe_digest"]),
        trainer=TrainerName(str(row["trainer"])),
        lane=Lane(str(row["lane"])),
        python=Path(str(row["python"])),
        timeout_s=number_of(row["timeout_s"]),
        metric=str(row["metric"]),
        tolerance=None if tolerance is None else number_of(tolerance),
        executor=ExecutorOptions.from_json(mapping_of(row["executor"])),
        search=SearchOptions.from_json(mapping_of(row["search"])),
        scope=Scope.from_json(mapping_of(row.get("scope", {}))),
        stage=Stage.from_json(mapping_of(row["stage"])) if "stage" in row else Stage(),
    )


def _read_journal(path: Path) -> tuple[BisectPlan, list[BisectStep], list[bytes]]:
    """The plan, the finished runs, and the lines that say so."""
    lines = _whole_lines(path.read_bytes())
    rows = [_read_line(path, line, number) for number, line in enumerate(lines, start=1)]
    return *_replay(path, rows), lines


def load_journal(path: Path, lines: Iterable[str]) -> tuple[BisectPlan, list[BisectStep]]:
    """The plan and the finished runs that a journal's lines tell, without holding it.

    Raises:
        StateError: A line is none of a journal.
    """
    rows = [_read_line(path, line.encode(), number) for number, line in enumerate(lines, start=1)]
    if rows and rows[0].get("kind") == "plan":
        rows[0] = {"schema_version": SCHEMA_VERSION, "lossbisect_version": __version__, **rows[0]}
    return _replay(path, rows)


def is_held(directory: Path) -> bool:
    """Whether a process works on the bisect in a folder."""
    try:
        _lock(directory).close()
    except StateError:
        return True
    return False


def _replay(path: Path, rows: list[dict[str, object]]) -> tuple[BisectPlan, list[BisectStep]]:
    if not rows or rows[0].get("kind") != "plan":
        raise StateError(f"{path}: the plan is missing; the bisect was killed before it began. Start a new one.")
    versions = (rows[0].get("schema_version"), rows[0].get("lossbisect_version"))
    if versions != (SCHEMA_VERSION, __version__):
        raise StateError(
            f"{path}: written by lossbisect {versions[1]} (journal {versions[0]}), and this is {__version__} (journal "
            f"{SCHEMA_VERSION}); its trainers may have changed. "
            "Start a new bisect."
        )
    steps: list[BisectStep] = []
    try:
        plan = _plan_from_json(mapping_of(rows[0]["plan"]))
        for row in rows[1:]:
            if row["kind"] == "abort":
                continue
            if row["kind"] == "forget":
                steps = [step for step in steps if str(step.record.out) not in sequence_of(row["runs"])]
            else:
                steps.append(_step_from_json(row))
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"{path}: line {len(steps) + 1} is none of a journal ({error!r}). Start a new bisect."
        ) from error
    return plan, steps


def _whole_lines(content: bytes) -> list[bytes]:
    """Lines that have their end; a kill while writing leaves the last one without."""
    return content.split(b"\n")[:-1]


def _read_line(path: Path, line: bytes, number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise StateError(f"{path}:{number}: the journal is damaged ({error}). Start a new bisect.") from error
    if not isinstance(row, dict):
        raise StateError(f"{path}:{number}: the journal is damaged (not an object). Start a new bisect.")
    return row


def _lock(directory: Path) -> IO[bytes]:
    file = (directory / "lock").open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StateError(f"{directory}: another process works on this bisect. Wait for it, or stop it.") from error
    return file


def _sync_folder(directory: Path) -> None:
    """Make the journal's own entry in its folder durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
