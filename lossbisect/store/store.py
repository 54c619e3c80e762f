"""Finished runs, kept so that none is run twice: ``store.sqlite`` and a folder of files for each run.

A run's folder is in place before its row is written, and its row is gone before its folder is: whatever is killed when,
a run that is found is whole.
"""

import json
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lossbisect.errors import StoreError
from lossbisect.store.database import reading, writing
from lossbisect.store.files import curve_of, keep_files, orphans, size_of, take_files
from lossbisect.store.types import Environment, NotStored, RunFilter, RunKey, StoredRun
from lossbisect.store.worth import why_not_kept
from lossbisect.train.records import record_from_json, record_to_json
from lossbisect.train.types import Lane, Outcome, RunRecord

if TYPE_CHECKING:
    from lossbisect.parsers.runlog import RunLog

__all__ = ["RunStore"]

_RUNS = "SELECT runs.*, description FROM runs JOIN environments ON environments.digest = runs.environment"
_ENOUGH_REPEATS = 2
"""Equal runs of one key that prove that it repeats itself."""


class RunStore:
    """The store of one cache directory. Safe from several threads and processes at once.

    Attributes:
        file: The SQLite file; made when something is first written or read.
        folder: Holds a folder for each run.
    """

    def __init__(self, root: Path, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Use the store in a cache directory.

        Args:
            root: The cache directory.
            now: The clock.
        """
        self.root = root
        self.file = root / "store.sqlite"
        self.folder = root / "store"
        self._now = now

    def recall(
        self,
        key: RunKey,
        out: Path,
        *,
        but: Collection[str] = (),
        is_cut: bool = False,
        with_failures: bool = True,
    ) -> RunRecord | None:
        """A stored run of this key, with its files copied into ``out``; None if there is none.

        Args:
            key: What determines the run.
            out: The run's own folder, new or empty.
            but: Ids of runs that won't do: whoever asks has them already.
            is_cut: Take the longest run that was cut short, instead of the first whole one.
            with_failures: Where no run got on, take one that failed by its commit's fault.
        """
        by_outcome = {outcome: [run for run in self._of(key) if run.record.outcome is outcome] for outcome in Outcome}
        finished, cut = by_outcome[Outcome.FINISHED], by_outcome[Outcome.CUT]
        found = sorted(cut, key=lambda run: -run.iterations) if is_cut else finished
        if with_failures and not is_cut and not finished and not cut:
            found = by_outcome[Outcome.FAILED]
        run = next((run for run in found if run.id not in but), None)
        if run is None:
            return None
        try:
            take_files(self.folder / run.id, out)
        except OSError:  # pruned in this moment, or gone
            shutil.rmtree(out, ignore_errors=True)
            return None
        return replace(run.record, out=out.resolve(), stored_as=run.id)

    def add(self, key: RunKey, record: RunRecord) -> str | NotStored:
        """Keep a run that ended just now.

        Returns:
            Its id in the store, or why it isn't kept.

        Raises:
            StoreError: The store can't be written.
        """
        reason = why_not_kept(key, record)
        if reason is not None:
            return NotStored(reason=reason)
        now = self._now()
        name = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        curve, iterations, last_loss = curve_of(record.scalars)
        try:
            size_bytes = keep_files(record.out, self.folder / name)
        except OSError as error:
            raise StoreError(
                f"{self.folder}: can't be written: {error.strerror or error}. Make room, or go on by --no-store."
            ) from error
        try:
            with writing(self.file) as connection:
                if key.lane is Lane.CPU and record.outcome is Outcome.FINISHED:
                    _put_aside_what_no_longer_repeats(connection, key, curve)
                _insert(connection, key, record, name, now, curve, iterations, last_loss, size_bytes)
        except BaseException:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            raise
        return name

    def repeats(self, key: RunKey) -> "tuple[RunLog, ...]":
        """The curves of every finished run of this key, the first one first: they differ by noise alone."""
        from lossbisect.train.curves import read_run

        return tuple(read_run(run.record) for run in self._of(key) if run.record.outcome is Outcome.FINISHED)

    def history(self, key: RunKey) -> list[StoredRun]:
        """Finished runs of the same recipe, trainer, lane and environment at any commit, the oldest first."""
        return self._select(
            "recipe_digest = ? AND trainer = ? AND lane = ? AND environment = ? AND outcome = ? AND NOT is_stale",
            [key.recipe_digest, key.trainer.value, key.lane.value, key.environment.digest, Outcome.FINISHED.value],
        )

    def commits(self, key: RunKey) -> tuple[frozenset[str], frozenset[str]]:
        """Megatron-Core's commits of which there are curves of what this key is about otherwise.

        Returns:
            Those that a search ran, and so cut short at least once, and those whose runs all went to their end.
        """
        if not self.file.exists():
            return frozenset(), frozenset()
        with reading(self.file) as connection:
            rows = connection.execute(
                "SELECT mcore_commit, MAX(outcome = ?) AS is_cut FROM runs WHERE recipe_digest = ? AND trainer = ? AND "
                "lane = ? AND environment = ? AND bridge_commit IS ? AND outcome IN (?, ?) AND NOT is_stale "
                "GROUP BY mcore_commit",
                [
                    Outcome.CUT.value, key.recipe_digest, key.trainer.value, key.lane.value, key.environment.digest,
                    key.bridge_commit, Outcome.FINISHED.value, Outcome.CUT.value,
                ],
            ).fetchall()  # fmt: skip
        cut, whole = (frozenset(row["mcore_commit"] for row in rows if row["is_cut"] == is_cut) for is_cut in (1, 0))
        return cut, whole

    def runs(self, chosen: RunFilter | None = None) -> list[StoredRun]:
        """Runs that fit a filter, the newest last; unusable ones included."""
        return self._select(*_clauses(chosen))

    def newest(self, chosen: RunFilter | None = None, *, skip: int = 0, most: int) -> list[StoredRun]:
        """As `runs`, but the newest first, and so many at most after so many that are skipped."""
        where, values = _clauses(chosen)
        order = "added_at DESC, id DESC"  # the ids alone are sorted: a run's row is long
        ids = f"SELECT id FROM runs WHERE {where} ORDER BY {order} LIMIT {most:d} OFFSET {skip:d}"  # noqa: S608
        return self._select(f"id IN ({ids})", values, order=order)

    def count(self, chosen: RunFilter | None = None) -> int:
        """Number of the runs that fit a filter."""
        if not self.file.exists():
            return 0
        where, values = _clauses(chosen)
        with reading(self.file) as connection:
            found: int = connection.execute(f"SELECT COUNT(*) FROM runs WHERE {where}", values).fetchone()[0]  # noqa: S608
        return found

    def find(self, name: str) -> StoredRun:
        """The run of this id, or whose id has this part and no other has.

        Raises:
            StoreError: There is none, or several.
        """
        found = self._select("id = ?", [name]) or (self._select("instr(id, ?)", [name]) if name else [])
        if len(found) == 1:
            return found[0]
        if found:
            raise StoreError(
                f"{self.file}: '{name}' may be any of {', '.join(run.id for run in found[-5:])}. Say more."
            )
        raise StoreError(f"{self.file}: no run '{name}'. 'lossbisect runs list' shows them.")

    def remove(self, runs: Iterable[StoredRun]) -> None:
        """Forget runs and delete their files."""
        names = [run.id for run in runs]
        with writing(self.file) as connection:
            connection.executemany("DELETE FROM runs WHERE id = ?", [(name,) for name in names])
            for table, column in (("environments", "environment"), ("recipes", "recipe_digest")):
                connection.execute(f"DELETE FROM {table} WHERE digest NOT IN (SELECT {column} FROM runs)")  # noqa: S608
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def orphans(self) -> list[tuple[Path, int]]:
        """Folders that belong to no run, an hour old at least, with their sizes in bytes."""
        known = frozenset(run.id for run in self.runs())
        return [(path, size_of(path)) for path in orphans(self.folder, known)]

    def _of(self, key: RunKey) -> list[StoredRun]:
        """Usable runs of a key whose files are there, by repetition."""
        found = self._select("key = ? AND NOT is_stale", [key.digest])
        there = [run for run in found if run.record.out.is_dir()]
        return sorted(there, key=lambda run: run.repetition)

    def _select(self, where: str, values: list[str], *, order: str = "added_at, id") -> list[StoredRun]:
        if not self.file.exists():
            return []
        with reading(self.file) as connection:
            rows = connection.execute(f"{_RUNS} WHERE {where} ORDER BY {order}", values).fetchall()
        return [_stored_run(row, self.folder) for row in rows]


def _clauses(chosen: RunFilter | None) -> tuple[str, list[str]]:
    """A filter as SQL, and its values."""
    chosen = chosen or RunFilter()
    asked = {
        "mcore_commit LIKE ? || '%'": chosen.commit and chosen.commit.lower().replace("%", "").replace("_", ""),
        "recipe = ?": chosen.recipe,
        "trainer = ?": chosen.trainer,
        "lane = ?": chosen.lane,
        "added_at >= ?": chosen.since and chosen.since.astimezone(UTC).isoformat(),
    }
    given = {clause: value for clause, value in asked.items() if value is not None}
    return " AND ".join(given) or "1", [str(value) for value in given.values()]


def _put_aside_what_no_longer_repeats(connection: sqlite3.Connection, key: RunKey, curve: str) -> None:
    """Where a set-up that had repeated itself bit for bit gives other numbers, something unseen has changed.

    Whatever was stored before in this environment on the CPU lane is then no evidence for what runs now.
    """
    rows = connection.execute(
        "SELECT curve FROM runs WHERE key = ? AND outcome = ? AND NOT is_stale", [key.digest, Outcome.FINISHED.value]
    ).fetchall()
    curves = [row["curve"] for row in rows]
    if len(curves) >= _ENOUGH_REPEATS and len(set(curves)) == 1 and curves[0] != curve:
        connection.execute(
            "UPDATE runs SET is_stale = 1 WHERE environment = ? AND lane = ?", [key.environment.digest, Lane.CPU.value]
        )


def _insert(
    connection: sqlite3.Connection, key: RunKey, record: RunRecord, name: str, now: datetime, curve: str,
    iterations: int, last_loss: float | None, size_bytes: int,
) -> None:  # fmt: skip
    connection.execute(
        "INSERT OR IGNORE INTO environments VALUES (?, ?)",
        [key.environment.digest, json.dumps(asdict(key.environment), sort_keys=True)],
    )
    connection.execute(
        "INSERT OR IGNORE INTO recipes VALUES (?, ?)", [key.recipe_digest, json.dumps(key.recipe, sort_keys=True)]
    )
    row = {
        "id": name,
        "key": key.digest,
        "repetition": connection.execute(
            "SELECT COALESCE(MAX(repetition) + 1, 0) FROM runs WHERE key = ?", [key.digest]
        ).fetchone()[0],
        "added_at": now.astimezone(UTC).isoformat(),
        "mcore_commit": key.mcore_commit,
        "bridge_commit": key.bridge_commit,
        "recipe": record.spec.recipe,
        "recipe_digest": key.recipe_digest,
        "trainer": key.trainer.value,
        "lane": key.lane.value,
        "settings": json.dumps(key.settings, sort_keys=True),
        "environment": key.environment.digest,
        "outcome": record.outcome.value,
        "iterations": iterations,
        "last_loss": last_loss,
        "curve": curve,
        "size_bytes": size_bytes,
        "record": json.dumps(record_to_json(record)),
    }
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({marks})", list(row.values()))  # noqa: S608


def _stored_run(row: sqlite3.Row, folder: Path) -> StoredRun:
    try:
        record = record_from_json(json.loads(row["record"]))
        return StoredRun(
            id=row["id"],
            key=row["key"],
            repetition=row["repetition"],
            added_at=datetime.fromisoformat(row["added_at"]),
            recipe=row["recipe"],
            recipe_digest=row["recipe_digest"],
            environment=Environment(**json.loads(row["description"])),
            iterations=row["iterations"],
            last_loss=row["last_loss"],
            size_bytes=row["size_bytes"],
            is_stale=bool(row["is_stale"]),
            record=replace(record, out=folder / row["id"], stored_as=row["id"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{folder.parent / 'store.sqlite'}: the row of run {row['id']} can't be read ({error!r}). "
            "Move the file away, or go on by --no-store."
        ) from error
