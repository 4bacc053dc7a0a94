"""Writing of rows and their entries into the tables of an index; the caller begins a transaction.

sqlalchemy is an optional package, so it is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from notebook_probe.catalogues.query.flattened import FlatValue
from notebook_probe.catalogues.query.flattened import entries as entries_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Put", "forget", "forget_whole", "generation_of", "keep", "next_generation"]

Row = Mapping[str, Any]
Key = tuple[str, str]


class Put(NamedTuple):
    """Row to store for a location."""

    host: str
    place: str
    mark: str
    may_end: bool
    row: Row


def generation_of(connection: Connection) -> int:
    """Return the number of the last change."""
    from sqlalchemy import select

    from notebook_probe.catalogues.index.tables import schema

    return int(connection.execute(select(schema.c.generation)).scalar_one())


def next_generation(connection: Connection) -> int:
    """Return the number of a new change; other changes wait until it is done."""
    from sqlalchemy import update

    from notebook_probe.catalogues.index.tables import schema

    connection.execute(update(schema).values(generation=schema.c.generation + 1))
    return generation_of(connection)


def keep(connection: Connection, some: Sequence[Put], generation: int) -> dict[Key, int]:
    """Replace the rows of these locations; return their ids by host and location.

    Only changed entries are written.
    """
    before = _rows_of(connection, some)
    _put_rows(connection, some, generation)
    ids = {key: n for key, (n, _) in _rows_of(connection, some, with_row=False).items()}
    gone: list[tuple[int, str, int]] = []
    new: list[tuple[Any, ...]] = []
    for one in some:
        key = one.host, one.place
        run, now = ids[key], _entries_of_row(one.row)
        then = _entries_of_row(json.loads(before[key][1])) if key in before else {}
        gone += [(run, *at) for at, flat in then.items() if now.get(at) != flat]
        new += [(at[0], run, at[1], *flat) for at, flat in now.items() if then.get(at) != flat]
    _delete_entries(connection, gone)
    _insert_entries(connection, new)
    return ids


def forget(connection: Connection, ids: Sequence[int]) -> None:
    """Forget the rows of these ids."""
    from sqlalchemy import delete, select

    from notebook_probe.catalogues.index.tables import runs

    rows = connection.execute(select(runs.c.id, runs.c.row).where(runs.c.id.in_(ids))).all()
    _delete_entries(
        connection, [(run, *at) for run, row in rows for at in _entries_of_row(json.loads(row))]
    )
    connection.execute(delete(runs).where(runs.c.id.in_(ids)))


def forget_whole(connection: Connection, ids: Sequence[int]) -> None:
    """Delete the rows of these ids with all their entries, whatever the rows contain."""
    from sqlalchemy import delete

    from notebook_probe.catalogues.index.tables import entries, runs

    connection.execute(delete(entries).where(entries.c.run.in_(ids)))
    connection.execute(delete(runs).where(runs.c.id.in_(ids)))


def _entries_of_row(row: Row) -> dict[tuple[str, int], FlatValue]:
    """Return the entries of a row, by field and by number among those of the same field."""
    found: dict[tuple[str, int], FlatValue] = {}
    last, n = "", 0
    for field, one in entries_of(row):
        n = n + 1 if field == last else 0
        found[field, n], last = one, field
    return found


def _rows_of(
    connection: Connection, some: Sequence[Put], with_row: bool = True
) -> dict[Key, tuple[int, str]]:
    """Return ids and existing rows of these locations."""
    from sqlalchemy import literal, select

    from notebook_probe.catalogues.index.tables import runs

    row = runs.c.row if with_row else literal("")
    wanted = select(runs.c.host, runs.c.place, runs.c.id, row)
    # Two conditions find the pairs of any host with any place, too, which are left out below.
    ours = {(one.host, one.place) for one in some}
    hosts, places = ({*one} for one in zip(*ours, strict=True))
    wanted = wanted.where(runs.c.host.in_(hosts), runs.c.place.in_(places))
    found = connection.execute(wanted)
    return {(host, place): (n, row) for host, place, n, row in found if (host, place) in ours}


def _put_rows(connection: Connection, some: Iterable[Put], generation: int) -> None:
    from sqlalchemy.dialects import postgresql, sqlite

    from notebook_probe.catalogues.index.tables import runs

    inserts: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    made = inserts[connection.dialect.name](runs)
    changed = {name: made.excluded[name] for name in ("mark", "may_end", "written", "row")}
    given = (
        {
            "host": one.host,
            "place": one.place,
            "mark": one.mark,
            "may_end": int(one.may_end),
            "written": generation,
            "row": json.dumps(one.row),
        }
        for one in some
    )
    put = made.on_conflict_do_update(index_elements=["host", "place"], set_=changed)
    connection.execute(put, [*given])


def _delete_entries(connection: Connection, gone: Sequence[tuple[int, str, int]]) -> None:
    from sqlalchemy import bindparam, delete

    from notebook_probe.catalogues.index.tables import entries

    of = entries.c
    asked = delete(entries).where(
        of.run == bindparam("of_run"),
        of.field == bindparam("of_field"),
        of.n == bindparam("of_n"),
    )
    if gone:
        given = [{"of_run": run, "of_field": field, "of_n": n} for run, field, n in gone]
        connection.execute(asked, given)


def _insert_entries(connection: Connection, new: Sequence[tuple[Any, ...]]) -> None:
    """Insert through the driver itself: the values have the columns' types, and are many."""
    from notebook_probe.catalogues.index.tables import entries

    columns = entries.c.keys()
    made = entries.insert().compile(dialect=connection.dialect)
    given = new if made.positional else [dict(zip(columns, one, strict=True)) for one in new]
    if given:
        connection.exec_driver_sql(str(made), given)
