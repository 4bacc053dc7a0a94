"""Opening the database of an index, and making its tables where they are not, or are older."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_probe.errors import CatalogueError, RecordFormatError
from notebook_probe.record.store.destination import import_extra

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

__all__ = ["INDEX", "IN_MEMORY", "is_damaged", "open_database", "reaching", "without_password"]

IN_MEMORY = "sqlite://"
WAIT_S = 5.0
"""Seconds to wait for a database that another process writes; training never waits."""
CONNECT_S = 10
INDEX = "catalogue.sqlite"
"""Name of the file of a catalogue."""
POSTGRES = ("postgres://", "postgresql://")


def open_database(place: str | PathLike[str]) -> Engine:
    """Return the database at a URL, or in a file, with its tables.

    Raises
    ------
    MissingExtraError
        SQLAlchemy or the driver is not installed.
    RecordFormatError
        The tables are of a newer version.
    sqlalchemy.exc.DBAPIError
        It cannot be reached or written, or the file is no database.
    """
    sqlalchemy = import_extra("sqlalchemy", "catalogue", "a catalogue")
    url = _url(fspath(place))
    if url.startswith("sqlite"):
        engine = _sqlite(sqlalchemy, url)
    else:
        import_extra("psycopg", "postgres", "a catalogue in PostgreSQL")
        engine = sqlalchemy.create_engine(
            # A catalogue is kept for hours; a server may have closed the connection meanwhile.
            url,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10},
        )
    try:
        _make_tables(engine)
    # An interrupt, too, must not leave connections in the pool.
    except BaseException:
        engine.dispose()
        raise
    return engine


def without_password(place: str | PathLike[str]) -> str:
    """Return the place as it may be printed.

    Examples
    --------
    >>> without_password("postgresql://ann:secret@host/lab")
    'postgresql://ann:***@host/lab'
    """
    return re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:***@", fspath(place))


def _url(place: str) -> str:
    for scheme in POSTGRES:
        if place.startswith(scheme):
            return f"postgresql+psycopg://{place.removeprefix(scheme)}"
    if "://" in place:
        return place
    file = Path(place).expanduser().absolute()
    if file.is_dir():
        raise CatalogueError(
            f"the catalogue in {place} cannot be used: that is a folder, and a file is expected, "
            f"such as {Path(place) / INDEX}; catalogue(root={place!r}) looks for runs below it"
        )
    return f"sqlite:///{file}"


def _sqlite(sqlalchemy: Any, url: str) -> Any:
    in_memory = url == IN_MEMORY
    # In memory each connection would have a separate database: all threads share one.
    pool = {"poolclass": sqlalchemy.pool.StaticPool} if in_memory else {}
    # Panels use the catalogue from their own threads; SQLAlchemy gives a connection to one at a
    # time.
    options = {"timeout": WAIT_S, "check_same_thread": False}
    engine = sqlalchemy.create_engine(url, connect_args=options, **pool)

    def settle(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        if not in_memory:
            with suppress(sqlite3.OperationalError):  # while another process does the same
                cursor.execute("PRAGMA journal_mode=WAL")  # readers never wait for writers
            cursor.execute("PRAGMA synchronous=NORMAL")  # it can be rebuilt from the records
        cursor.close()

    sqlalchemy.event.listen(engine, "connect", settle)
    return engine


@contextmanager
def reaching(name: str) -> Iterator[None]:
    """Raise a CatalogueError that names the database for an error of its driver."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        why = str(error.orig).strip().partition("\n")[0]
        raise CatalogueError(f"the catalogue in {name} cannot be used: {why}") from error


def is_damaged(error: DBAPIError) -> bool:
    """Return whether a file is no valid database; other files may be in use by others."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _make_tables(engine: Engine) -> None:
    from sqlalchemy.exc import DBAPIError

    with engine.connect() as connection:
        if _has_tables(connection):
            return
    try:
        _make(engine)
    except DBAPIError:  # in PostgreSQL another process made them in the same moment
        _make(engine)


def _make(engine: Engine) -> None:
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # looked for and made by one at a time
        if not _has_tables(connection):
            _make_in(connection)


def _has_tables(connection: Connection) -> bool:
    """Return whether the tables of this version exist.

    Raises
    ------
    RecordFormatError
        They are of a newer version.
    """
    from sqlalchemy import inspect, select

    from notebook_probe.catalogues.index.tables import VERSION, schema

    if not inspect(connection).has_table(schema.name):
        return False
    version = connection.execute(select(schema.c.version)).scalar() or 0
    if version > VERSION:
        raise RecordFormatError(
            f"the catalogue in {connection.engine.url!r} is of version {version}; this version "
            f"of the package has {VERSION}: give it a separate database"
        )
    return bool(version == VERSION)


def _make_in(connection: Connection) -> None:
    from notebook_probe.catalogues.index.tables import VERSION, metadata, schema

    # Tables of an older version are made again: the records have everything that is in them.
    metadata.drop_all(connection)
    metadata.create_all(connection)
    # Begins where no earlier one can have been, as who holds rows knows them by it.
    connection.execute(schema.insert().values(version=VERSION, generation=time.time_ns()))
