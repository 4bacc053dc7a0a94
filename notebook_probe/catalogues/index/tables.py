"""The tables of an index, the same in every database; all begin alike, so that others stay apart.

What lies in an entry says `notebook_probe.catalogues.query.laid`.
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
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy import text as sql

__all__ = ["VERSION", "entries", "metadata", "runs", "schema"]

VERSION = 1
"""Of these tables; those of an older one are made anew."""

metadata = MetaData()

schema = Table("notebook_probe_schema", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "notebook_probe_runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("host", String, nullable=False),
    Column("place", String, nullable=False),
    Column("mark", String, nullable=False),
    Column("may_end", Integer, nullable=False),
    Column("written", BigInteger, nullable=False),
    Column("row", Text, nullable=False),
    UniqueConstraint("host", "place"),
)

entries = Table(
    "notebook_probe_entries",
    metadata,
    Column("run", Integer, nullable=False, index=True),  # of `runs`; unchecked, being many
    Column("field", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("number", Double),
    Column("text", LargeBinary),
    Index("notebook_probe_by_number", "field", "number"),
    Index(
        "notebook_probe_by_text",
        "field",
        "text",
        sqlite_where=sql("text IS NOT NULL"),
        postgresql_where=sql("text IS NOT NULL"),
    ),
)
