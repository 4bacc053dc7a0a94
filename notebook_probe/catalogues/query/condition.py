"""What every condition can do, and what is known of it as SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from notebook_probe.catalogues.query.fields import asked_as
from notebook_probe.errors import UnknownNameError, near

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

__all__ = ["Columns", "Condition", "Row", "Sql", "Test"]

Row: TypeAlias = Mapping[str, Any]
"""A run as names with dots and plain values; None is as good as not there."""

Test: TypeAlias = "Callable[[Any], ColumnElement[bool]]"
"""Of an entry, an object with the columns ``kind``, ``number`` and ``text`` of `laid`."""


class Sql(NamedTuple):
    """A condition as SQL."""

    expression: ColumnElement[bool]
    exact: bool
    """Whether just those rows match; else others are among them, and `matches` tells which."""


class Columns(Protocol):
    """The tables of an index, as conditions ask them."""

    def any(self, field: str, test: Test | None) -> ColumnElement[bool]:
        """That a run has an entry of this field that passes; any entry of it without a test."""


class Condition(ABC):
    """Something that a run meets or not; a frozen value, whose text reads back as itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def fields(self) -> frozenset[str]:
        """The names that it asks of a row."""

    @abstractmethod
    def matches(self, row: Row) -> bool:
        """Whether the run of this row meets it."""

    @abstractmethod
    def sql(self, columns: Columns) -> Sql | None:
        """What a database can say of it; None where that is nothing: every row is to be asked."""

    def check(self, known: Collection[str]) -> None:
        """Refuse a field that no run has, which is most often a slip; of no runs, none.

        Raises
        ------
        UnknownNameError
            With the names that are close.
        """
        for field in sorted(self.fields - {*known}) if known else ():
            names = sorted({*known, *map(asked_as, known)})
            raise UnknownNameError(f"no run has {field!r}; {near(field, names)}")
