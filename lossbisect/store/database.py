"""The store's SQLite file: opened, brought to this version's schema, and written in whole transactions.

WAL mode: readers never wait for a writer, and writers of several processes wait for each other. A connection lives for
one piece of work, so that no thread or process shares one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lossbisect.errors import StoreError

__all__ = ["MIGRATIONS", "reading", "writing"]

_WAIT_S = 60.0

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE environments (
            digest TEXT PRIMARY KEY,
            description TEXT NOT NULL
        )""",
        """CREATE TABLE recipes (
            digest TEXT PRIMARY KEY,
            content TEXT NOT NULL
        )""",
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            key TEXT NOT NULL,
            repetition INTEGER NOT NULL,
            added_at TEXT NOT NULL,
            mcore_commit TEXT NOT NULL,
            bridge_commit TEXT,
            recipe TEXT NOT NULL,
            recipe_digest TEXT NOT NULL REFERENCES recipes (digest),
            trainer TEXT NOT NULL,
            lane TEXT NOT NULL,
            settings TEXT NOT NULL,
            environment TEXT NOT NULL REFERENCES environments (digest),
            outcome TEXT NOT NULL,
            iterations INTEGER NOT NULL,
            last_loss REAL,
            curve TEXT NOT NULL,
            size_bytes INTEGER NOT NULL,
            is_stale INTEGER NOT NULL DEFAULT 0,
            record TEXT NOT NULL,
            UNIQUE (key, repetition)
        )""",
        "CREATE INDEX runs_of_commit ON runs (mcore_commit)",
        "CREATE INDEX runs_of_history ON runs (recipe_digest, trainer, lane, added_at)",
    ),
    (
        """CREATE TABLE triage (
            id INTEGER PRIMARY KEY,
            at TEXT NOT NULL,
            recipe TEXT NOT NULL,
            recipe_digest TEXT NOT NULL,
            trainer TEXT NOT NULL,
            lane TEXT NOT NULL,
            machine TEXT NOT NULL,
            metric TEXT NOT NULL,
            mcore_commit TEXT NOT NULL,
            bridge_commit TEXT,
            environment TEXT NOT NULL,
            kind TEXT NOT NULL,
            reason TEXT NOT NULL,
            noise_rel REAL NOT NULL,
            curve TEXT NOT NULL,
            culprits TEXT NOT NULL
        )""",
        "CREATE INDEX triage_of_series ON triage (recipe_digest, trainer, lane, machine, metric, id)",
        """CREATE TABLE acknowledgements (
            "commit" TEXT PRIMARY KEY,
            reason TEXT NOT NULL,
            "by" TEXT NOT NULL,
            at TEXT NOT NULL
        )""",
    ),
    ("CREATE INDEX runs_newest ON runs (added_at, id)",),
)
"""What brings the schema from each version to the next; the first one makes it. Never changed once released."""


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to read by.

    Raises:
        StoreError: The file can't be opened, isn't a store, or is a newer lossbisect's.
    """
    with _told(file), closing(_open(file)) as connection:
        yield connection


@contextmanager
def writing(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection in one transaction: all of it is written at the end, or nothing if an error comes through.

    Raises:
        StoreError: As `reading`, or the file can't be written.
    """
    with _told(file), closing(_open(file)) as connection, _transaction(connection):
        yield connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """SQLite's errors and the file system's in our words."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"{file}: the run store can't be used: {error}. Go on without it by --no-store, or move the file away."
        ) from error


def _open(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        if _version(connection) != len(MIGRATIONS):
            connection.execute("PRAGMA journal_mode = WAL")
            _migrate(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _migrate(connection: sqlite3.Connection, file: Path) -> None:
    with _transaction(connection):
        version = _version(connection)  # another process may have been faster
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{file}: made by a newer lossbisect (schema {version}, this one knows {len(MIGRATIONS)}). "
                "Update lossbisect, or name another cache by LOSSBISECT_CACHE_DIR."
            )
        for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
