"""SQL expressions of a condition on the tables of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notebook_probe.catalogues.index.tables import entries, runs

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from notebook_probe.catalogues.query.condition import Test

__all__ = ["EntryColumns"]


class EntryColumns:
    """The `Columns` of conditions: a row of `runs` with an entry of a field."""

    def any(self, field: str, test: Test | None) -> ColumnElement[bool]:
        from sqlalchemy import select

        found = select(entries.c.run).where(entries.c.field == field)
        return runs.c.id.in_(found if test is None else found.where(test(entries.c)))
