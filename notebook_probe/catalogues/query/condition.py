"""Interface of conditions, and their SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from notebook_probe.catalogues.query.fields import asked_as
from notebook_probe.errors import UnknownNameError, near

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

__all__ = ["Condition", "IndexTables", "Row", "Sql", "Test"]

Row: TypeAlias = Mapping[str, Any]
"""A run as names with dots and plain values; None is the same as missing."""

Test: TypeAlias = "Callable[[Any], ColumnElement[bool]]"
"""Test of an entry, an object with the columns ``kind``, ``number`` and ``text`` of `flattened`."""


class Sql(NamedTuple):
    """A condition as SQL."""

    expression: ColumnElement[bool]
    exact: bool
    """True if only matching rows are selected; else `matches` has to filter them."""


class IndexTables(Protocol):
    """The tables of an index, as conditions ask them.

    Conditions know no index: `EntryColumns`, in a room that they may not import, is one.
    """

    def any(self, field: str, test: Test | None) -> ColumnElement[bool]:
        """Return SQL for a run with an entry of this field that passes the test, or any entry."""


class Condition(ABC):
    """Condition on a run; a frozen value, whose text parses back to itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def fields(self) -> frozenset[str]:
        """The names that it asks of a row."""

    @abstractmethod
    def matches(self, row: Row) -> bool:
        """Return whether the run of this row meets the condition."""

    @abstractmethod
    def sql(self, columns: IndexTables) -> Sql | None:
        """Return the condition as SQL; None if it has none, and every row has to be checked."""

    def check(self, known: Collection[str]) -> None:
        """Refuse a field that no run has, which is most often a slip; of no runs, none.

        Raises
        ------
        UnknownNameError
            The message has the close names.
        """
        for field in sorted(self.fields - {*known}) if known else ():
            names = sorted({*known, *map(asked_as, known)})
            raise UnknownNameError(f"no run has {field!r}; {near(field, names)}")
