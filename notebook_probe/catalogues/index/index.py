"""Rows in a database: what is known, what is new, and those that meet a condition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from notebook_probe.catalogues.index.changes import (
    Put,
    forget,
    forget_whole,
    generation_of,
    keep,
    next_generation,
)
from notebook_probe.catalogues.query.condition import Condition

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Select

__all__ = ["Index", "Known", "Put"]

AT_ONCE = 500
Row = Mapping[str, Any]
T = TypeVar("T")


class Known(NamedTuple):
    """Entry of an index about a location."""

    id: int
    mark: str
    may_end: bool
    written: int


@dataclass(frozen=True)
class _Generation:
    """Contents of the database at one generation."""

    generation: int
    known: dict[tuple[str, str], Known]

    @cached_property
    def by_id(self) -> dict[int, tuple[str, Known]]:
        """Hosts and entries by id."""
        return {one.id: (host, one) for (host, _), one in self.known.items()}


class Index:
    """The rows of one database; several processes may write it at once.

    Known entries are kept in memory while the database is of the same generation.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._seen = _Generation(-1, {})
        self._read: dict[int, tuple[int, Row]] = {}

    @property
    def name(self) -> str:
        """The place of the database, without a password."""
        return self._engine.url.render_as_string()

    def known(self) -> Mapping[tuple[str, str], Known]:
        """Return the entries by host and location."""
        with self._engine.connect() as connection:
            return self._look(connection).known

    def put(self, new: Iterable[Put]) -> None:
        """Store these rows, replacing those of their locations."""
        # In one order, so that two processes never wait for each other's rows.
        for some in _batches(sorted(new, key=lambda one: (one.host, one.place))):
            with self._change() as (connection, generation):
                ids = keep(connection, some, generation)
            known = {
                key: Known(ids[key], one.mark, one.may_end, generation)
                for one in some
                for key in [(one.host, one.place)]
            }
            self._has_changed(generation, self._seen.known | known)

    def drop(self, ids: Iterable[int]) -> None:
        """Forget these rows."""
        for some in _batches(sorted(ids)):
            with self._change() as (connection, generation):
                forget(connection, some)
            gone = {*some}
            left = {key: one for key, one in self._seen.known.items() if one.id not in gone}
            self._has_changed(generation, left)

    def replace(self, gone: Iterable[int], new: Iterable[Put]) -> None:
        """Replace rows by others in one transaction, so that no reader sees a part of them."""
        with self._change() as (connection, generation):
            for ids in _batches(sorted(gone)):
                forget_whole(connection, ids)
            for some in _batches(sorted(new, key=lambda one: (one.host, one.place))):
                keep(connection, some, generation)

    def rows(self, asked: Condition) -> list[tuple[str, Row]]:
        """Hosts and rows that may meet a condition: none that does is missing."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.columns import EntryColumns
        from notebook_probe.catalogues.index.tables import runs

        sql = asked.sql(EntryColumns())
        with self._engine.connect() as connection:
            known = self._look(connection).by_id
            found: Iterable[int] = known
            if sql is not None:
                wanted = select(runs.c.id).where(sql.expression)
                # A row that was added since is left out: it is read at the next look.
                found = [n for n in connection.execute(wanted).scalars() if n in known]
            found = sorted(found)
            self._read_new(connection, [known[n][1] for n in found])
        return [(known[n][0], self._read[n][1]) for n in found if n in self._read]

    def fields(self) -> set[str]:
        """Return the names that any row has, as stored in the index."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import entries

        with self._engine.connect() as connection:
            return set(connection.execute(select(entries.c.field).distinct()).scalars())

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    @contextmanager
    def _change(self) -> Iterator[tuple[Connection, int]]:
        """Start a change and yield its number, after waiting for other changes in progress."""
        from sqlalchemy.exc import OperationalError

        with self._engine.connect() as connection:
            while True:
                before = generation_of(connection)
                try:
                    generation = next_generation(connection)
                    break
                except OperationalError:  # another has held it for long, or one after the other
                    connection.rollback()
                    if generation_of(connection) == before:
                        raise
            yield connection, generation
            connection.commit()

    def _look(self, connection: Connection) -> _Generation:
        """Return the known entries, read again if another process has changed them."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import runs

        # Before the rows: those may be newer, which only means that they are read once more.
        generation = generation_of(connection)
        seen = self._seen
        if generation != seen.generation:
            of = runs.c
            wanted = select(of.host, of.place, of.id, of.mark, of.may_end, of.written)
            known = {
                (host, place): Known(n, mark, bool(may_end), written)
                for host, place, n, mark, may_end, written in connection.execute(wanted)
            }
            seen = self._seen = _Generation(generation, known)
        return seen

    def _has_changed(self, generation: int, known: dict[tuple[str, str], Known]) -> None:
        """Take in our own change, unless other processes have changed something before it."""
        if generation == self._seen.generation + 1:
            self._seen = _Generation(generation, known)

    def _read_new(self, connection: Connection, wanted: Sequence[Known]) -> None:
        """Read the rows that are others than at the last look."""
        from sqlalchemy import select

        from notebook_probe.catalogues.index.tables import runs

        new = [one.id for one in wanted if self._read.get(one.id, (0,))[0] != one.written]
        for some in _batches(new):
            asked: Select[Any] = select(runs.c.id, runs.c.written, runs.c.row)
            for n, written, row in connection.execute(asked.where(runs.c.id.in_(some))):
                self._read[n] = written, json.loads(row)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]
