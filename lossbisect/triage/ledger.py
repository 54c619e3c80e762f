"""The history of triages, in the run store's file: each commit's curve, what was said of it, and acknowledgements.

Nothing is ever changed here: an acknowledgement is a record of its own, and what it makes of earlier entries is worked
out when they are read.
"""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import Row

from lossbisect.errors import StoreError
from lossbisect.store.database import reading, writing
from lossbisect.train.types import Lane, TrainerName
from lossbisect.triage.types import Acknowledgement, Curve, Entry, Kind, Point, Series

__all__ = ["Ledger"]

_ENDLESS = -1.0
"""Stands for a noise without bound: one run of a commit has a number where another one hasn't."""
_INSERT = """INSERT INTO triage
(at, recipe, recipe_digest, trainer, lane, machine, metric, mcore_commit, bridge_commit, environment, kind, reason,
noise_rel, curve, culprits) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_SERIES = "recipe_digest = ? AND trainer = ? AND lane = ? AND machine = ? AND metric = ?"

_ALL_SERIES = """SELECT recipe, recipe_digest, trainer, lane, machine, metric FROM triage
WHERE id IN (SELECT MAX(id) FROM triage GROUP BY recipe_digest, trainer, lane, machine, metric)"""


class Ledger:
    """The history in one cache directory. Safe from several processes at once."""

    def __init__(self, root: Path) -> None:
        """Use the store in a cache directory."""
        self.file = root / "store.sqlite"

    def add(self, series: Series, entry: Entry) -> None:
        """Write an entry down.

        Raises:
            StoreError: The store can't be written.
        """
        noise = entry.noise_rel if math.isfinite(entry.noise_rel) else _ENDLESS
        row = (
            entry.at.astimezone(UTC).isoformat(), series.recipe, series.recipe_digest, series.trainer.value,
            series.lane.value, series.machine, series.metric, entry.point.mcore, entry.point.bridge,
            entry.environment, entry.kind.value, entry.reason, noise,
            json.dumps(sorted((i, repr(float(value))) for i, value in entry.curve.items())),
            json.dumps(entry.culprits),
        )  # fmt: skip
        with writing(self.file) as connection:
            connection.execute(_INSERT, row)

    def entries(self, series: Series) -> list[Entry]:
        """The entries of one series, the oldest first."""
        rows = self._rows(f"SELECT * FROM triage WHERE {_SERIES} ORDER BY id", _values(series))  # noqa: S608
        return [_entry(row, self.file) for row in rows]

    def newest(self, series: Series, *, skip: int = 0, most: int) -> list[Entry]:
        """The newest entries of one series, so many at most after so many skipped ones, the oldest of them first."""
        statement = f"SELECT * FROM triage WHERE {_SERIES} ORDER BY id DESC LIMIT ? OFFSET ?"  # noqa: S608
        rows = self._rows(statement, (*_values(series), most, skip))
        return [_entry(row, self.file) for row in reversed(rows)]

    def count(self, series: Series) -> int:
        """Number of the entries of one series."""
        statement = f"SELECT COUNT(*) AS number FROM triage WHERE {_SERIES}"  # noqa: S608
        rows = self._rows(statement, _values(series))
        return int(rows[0]["number"]) if rows else 0

    def all_series(self) -> list[Series]:
        """Every series that has an entry, by recipe; its name is that of its newest entry."""
        found = {}
        for row in self._rows(_ALL_SERIES, ()):
            series = Series(
                recipe=row["recipe"],
                recipe_digest=row["recipe_digest"],
                trainer=TrainerName(row["trainer"]),
                lane=Lane(row["lane"]),
                machine=row["machine"],
                metric=row["metric"],
            )
            found[series.recipe_digest, series.trainer, series.lane, series.machine, series.metric] = series
        return sorted(found.values(), key=lambda each: (each.recipe, each.trainer, each.lane, each.machine))

    def acknowledge(self, given: Acknowledgement) -> None:
        """Write an acknowledgement down; a later one of the same commit replaces the reason.

        Raises:
            StoreError: The store can't be written.
        """
        with writing(self.file) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO acknowledgements VALUES (?, ?, ?, ?)",
                (given.commit, given.reason, given.by, given.at.astimezone(UTC).isoformat()),
            )

    def acknowledged(self) -> dict[str, Acknowledgement]:
        """Every acknowledgement, by the commit's full SHA."""
        if not self.file.exists():
            return {}
        with reading(self.file) as connection:
            rows = connection.execute("SELECT * FROM acknowledgements ORDER BY at").fetchall()
        return {
            row["commit"]: Acknowledgement(
                commit=row["commit"], reason=row["reason"], by=row["by"], at=datetime.fromisoformat(row["at"])
            )
            for row in rows
        }

    def _rows(self, statement: str, values: tuple[str | int, ...]) -> list[Row]:
        if not self.file.exists():
            return []
        with reading(self.file) as connection:
            return connection.execute(statement, values).fetchall()


def _values(series: Series) -> tuple[str, ...]:
    return series.recipe_digest, series.trainer.value, series.lane.value, series.machine, series.metric


def _entry(row: Row, file: Path) -> Entry:
    try:
        noise = float(row["noise_rel"])
        return Entry(
            at=datetime.fromisoformat(row["at"]),
            point=Point(mcore=row["mcore_commit"], bridge=row["bridge_commit"]),
            kind=Kind(row["kind"]),
            reason=row["reason"],
            noise_rel=math.inf if noise < 0 else noise,
            curve=_curve(row["curve"]),
            culprits=tuple(json.loads(row["culprits"])),
            environment=row["environment"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{file}: entry {row['id']} of the history can't be read: {error!r}. Move the file away."
        ) from error


def _curve(text: str) -> Curve:
    return {int(iteration): float(value) for iteration, value in json.loads(text)}
