"""Tables of an index, the same in every database; a common prefix avoids name clashes.

The contents of an entry are described in `notebook_probe.catalogues.query.flattened`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = ["VERSION", "entries", "metadata", "runs", "schema"]

VERSION = 2
"""Version of these tables; older ones are rebuilt."""

metadata = MetaData()

schema = Table(
    "notebook_probe_schema",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("generation", BigInteger, nullable=False),  # another after every change
)

runs = Table(
    "notebook_probe_runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("host", String, nullable=False),
    Column("place", String, nullable=False),
    Column("mark", String, nullable=False),
    Column("may_end", Integer, nullable=False),
    Column("written", BigInteger, nullable=False),  # the generation of that
    Column("row", Text, nullable=False),
    UniqueConstraint("host", "place"),
)

entries = Table(
    "notebook_probe_entries",
    metadata,
    Column("field", String, nullable=False),
    Column("run", Integer, nullable=False),  # of `runs`; unchecked, being many
    Column("n", Integer, nullable=False),  # of several elements
    Column("kind", String, nullable=False),
    Column("number", Double),
    Column("text", LargeBinary),
    PrimaryKeyConstraint("field", "run", "n"),
    sqlite_with_rowid=False,  # the entries of a field are stored next to each other, and only there
)
by_value = (
    Index("notebook_probe_by_number", entries.c.field, entries.c.number),
    Index(
        "notebook_probe_by_text",
        entries.c.field,
        entries.c.text,
        postgresql_where=entries.c.text.is_not(None),
    ),
)
for one in by_value:  # stored in the order of arrival
    one.ddl_if(dialect="postgresql")
