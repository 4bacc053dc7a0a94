"""Rows in a database: what is known, what is new, and those that meet a condition."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from notebook_probe.catalogues.query.condition import Condition
from notebook_probe.catalogues.query.laid import entries as entries_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Select

__all__ = ["Index", "Known", "Put"]

AT_ONCE = 500
Row = Mapping[str, Any]
T = TypeVar("T")


class Known(NamedTuple):
    """What an index has of a place."""

    id: int
    mark: str
    may_end: bool


class Put(NamedTuple):
    """What is to be kept of a place."""

    host: str
    place: str
    mark: str
    may_end: bool
    row: Row


class Index:
    """The rows of one database; several processes may write it at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read: dict[int, tuple[int, Row]] = {}

    def known(self) -> dict[tuple[str, str], Known]:
        """By host and place."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import runs

        wanted = select(runs.c.host, runs.c.place, runs.c.id, runs.c.mark, runs.c.may_end)
        with self._engine.connect() as connection:
            found = connection.execute(wanted).all()
        return {(host, place): Known(n, mark, bool(end)) for host, place, n, mark, end in found}

    def put(self, new: Iterable[Put]) -> None:
        """Keep these, in place of what was known of their places."""
        # In one order everywhere, so that no two processes wait for each other in a circle.
        for some in _batches(sorted(new, key=lambda one: (one.host, one.place))):
            with self._engine.begin() as connection:
                self._put(connection, some)

    def drop(self, ids: Iterable[int]) -> None:
        """Forget these rows."""
        from sqlalchemy import delete

        from notebook_probe.catalogues.index.tables import entries, runs

        for some in _batches(sorted(ids)):
            with self._engine.begin() as connection:
                connection.execute(delete(runs).where(runs.c.id.in_(some)))
                connection.execute(delete(entries).where(entries.c.run.in_(some)))

    def clear(self) -> None:
        """Forget all."""
        from sqlalchemy import delete

        from notebook_probe.catalogues.index.tables import entries, runs

        with self._engine.begin() as connection:
            connection.execute(delete(runs))
            connection.execute(delete(entries))

    def rows(self, asked: Condition) -> list[tuple[str, Row]]:
        """Hosts and rows that may meet a condition: none that does is missing."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.columns import EntryColumns
        from notebook_probe.catalogues.index.tables import runs

        wanted = select(runs.c.id, runs.c.written, runs.c.host).order_by(runs.c.id)
        sql = asked.sql(EntryColumns())
        if sql is not None:
            wanted = wanted.where(sql.expression)
        with self._engine.connect() as connection:
            found = connection.execute(wanted).all()
            self._read_new(connection, [(n, written) for n, written, _ in found])
        return [(host, self._read[n][1]) for n, _, host in found if n in self._read]

    def fields(self) -> set[str]:
        """Names that any row has, as they lie in the index."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import entries

        with self._engine.connect() as connection:
            return set(connection.execute(select(entries.c.field).distinct()).scalars())

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _read_new(self, connection: Connection, found: Sequence[tuple[int, int]]) -> None:
        """Read the rows that are others than at the last look."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import runs

        new = [n for n, written in found if self._read.get(n, (0,))[0] != written]
        for some in _batches(new):
            wanted: Select[Any] = select(runs.c.id, runs.c.written, runs.c.row)
            for n, written, row in connection.execute(wanted.where(runs.c.id.in_(some))):
                self._read[n] = written, json.loads(row)

    def _put(self, connection: Connection, some: Sequence[Put]) -> None:
        from sqlalchemy import delete

        from notebook_probe.catalogues.index.tables import entries

        ids = self._put_rows(connection, some)
        connection.execute(delete(entries).where(entries.c.run.in_(sorted(ids.values()))))
        laid = [
            (ids[one.host, one.place], field, *values)
            for one in some
            for field, values in entries_of(one.row)
        ]
        if laid:
            _insert(connection, laid)

    def _put_rows(self, connection: Connection, some: Sequence[Put]) -> dict[tuple[str, str], int]:
        """Keep rows, in the order in which they are given; their ids by host and place."""
        from sqlalchemy import select
        from sqlalchemy.dialects import postgresql, sqlite

        from notebook_probe.catalogues.index.tables import runs

        inserts: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
        made = inserts[connection.dialect.name](runs)
        changed = {name: made.excluded[name] for name in ("mark", "may_end", "written", "row")}
        put = made.on_conflict_do_update(index_elements=["host", "place"], set_=changed)
        given = (
            {
                "host": one.host,
                "place": one.place,
                "mark": one.mark,
                "may_end": int(one.may_end),
                "written": time.time_ns(),
                "row": json.dumps(one.row),
            }
            for one in some
        )
        connection.execute(put, [*given])
        wanted = select(runs.c.host, runs.c.place, runs.c.id)
        wanted = wanted.where(runs.c.place.in_([one.place for one in some]))
        ours = {(one.host, one.place) for one in some}
        found = connection.execute(wanted)
        return {(host, place): n for host, place, n in found if (host, place) in ours}


def _insert(connection: Connection, laid: Sequence[tuple[Any, ...]]) -> None:
    """Insert entries by the driver itself: they are of the columns' own types, and many."""
    from notebook_probe.catalogues.index.tables import entries

    columns = entries.c.keys()
    made = entries.insert().compile(dialect=connection.dialect)
    given = laid if made.positional else [dict(zip(columns, one, strict=True)) for one in laid]
    connection.exec_driver_sql(str(made), given)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]
