"""SQLite files of unknown origin, opened for reading only and with bounds."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from notebook_probe.errors import RecordFormatError

__all__ = ["has_columns", "is_sqlite", "opened_database", "table_columns"]

MAGIC = b"SQLite format 3\0"
LONGEST_VALUE = 16 << 20
SECONDS = 8.0
"""Longest time of all queries on one connection."""
CHECKED_EVERY = 100_000
"""Instructions of SQLite between two looks at the clock."""


def is_sqlite(head: bytes) -> bool:
    """Return whether bytes start like a SQLite file."""
    return head.startswith(MAGIC)


@contextmanager
def opened_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database that is never changed.

    Raises
    ------
    RecordFormatError
        It cannot be read, or not in a few seconds.
    """
    # A database in WAL mode without a WAL would get one, even from a reader; unless it is declared
    # immutable, which it is not while there is a WAL.
    is_written = path.with_name(f"{path.name}-wal").exists()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro" + ("" if is_written else "&immutable=1")
    ends = time.monotonic() + SECONDS
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=2.0)) as connection:
            connection.text_factory = lambda text: text.decode(errors="replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            # A view may be an endless query.
            connection.set_progress_handler(lambda: time.monotonic() > ends, CHECKED_EVERY)
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
            yield connection
    except (sqlite3.Error, UnicodeError) as error:  # the latter for a damaged schema
        raise RecordFormatError(f"{path} cannot be read: {error}") from error


def has_columns(path: Path, table: str, needed: AbstractSet[str]) -> bool:
    """Return whether a database has a table with all of these columns."""
    with opened_database(path) as connection:
        return needed <= {*table_columns(connection, table)}


def table_columns(connection: sqlite3.Connection, table: str) -> Sequence[str]:
    """Return the columns of a table; empty if there is none of this name."""
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    if found is None:
        return ()
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
