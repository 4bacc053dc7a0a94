"""Conditions made of conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from notebook_probe.catalogues.query.condition import Condition, IndexTables, Row, Sql

__all__ = ["AllConditions", "AnyCondition", "Not", "all_of", "any_of"]

# SQLite limits the depth of an expression to 1,000 by default, and joining parts nests them.
MOST_IN_SQL = 100
"""Maximum parts of one condition in SQL."""


@dataclass(frozen=True, slots=True)
class AllConditions(Condition):
    """``a and b``; of no parts it is what every run meets."""

    parts: tuple[Condition, ...]

    @property
    def fields(self) -> frozenset[str]:
        return _fields(self.parts)

    def __str__(self) -> str:
        return " and ".join(_inside(one, AnyCondition) for one in self.parts)

    def matches(self, row: Row) -> bool:
        return all(one.matches(row) for one in self.parts)

    def sql(self, columns: IndexTables) -> Sql | None:
        # Leaving parts out selects more rows, which `matches` filters.
        found = [one.sql(columns) for one in self.parts[:MOST_IN_SQL]]
        known = [one for one in found if one is not None]
        return _together(and_, known, len(known) == len(self.parts)) if known else None


@dataclass(frozen=True, slots=True)
class AnyCondition(Condition):
    """``a or b``."""

    parts: tuple[Condition, ...]

    @property
    def fields(self) -> frozenset[str]:
        return _fields(self.parts)

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))

    def matches(self, row: Row) -> bool:
        return any(one.matches(row) for one in self.parts)

    def sql(self, columns: IndexTables) -> Sql | None:
        # Unlike in a conjunction, a part left out would lose rows.
        if len(self.parts) > MOST_IN_SQL:
            return None
        found = [one.sql(columns) for one in self.parts]
        known = [one for one in found if one is not None]
        return _together(or_, known, True) if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """``not a``: just what does not meet it, runs without the field among them."""

    part: Condition

    @property
    def fields(self) -> frozenset[str]:
        return self.part.fields

    def __str__(self) -> str:
        return f"not {_inside(self.part, AllConditions, AnyCondition)}"

    def matches(self, row: Row) -> bool:
        return not self.part.matches(row)

    def sql(self, columns: IndexTables) -> Sql | None:
        found = self.part.sql(columns)
        # Only what is exact can be negated: the complement of too many rows has too few.
        return Sql(~found.expression, True) if found is not None and found.exact else None


def all_of(parts: Iterable[Condition]) -> Condition:
    """Return the conjunction, flattened; one part is returned itself."""
    return _joined(AllConditions, parts)


def any_of(parts: Iterable[Condition]) -> Condition:
    """Return the disjunction, flattened; one part is returned itself."""
    return _joined(AnyCondition, parts)


def _joined(
    whole: type[AllConditions] | type[AnyCondition], parts: Iterable[Condition]
) -> Condition:
    flat: list[Condition] = []
    for one in parts:
        flat += one.parts if isinstance(one, whole) else [one]
    # Flat, so that a long chain is no deep recursion.
    return flat[0] if len(flat) == 1 else whole(tuple(flat))


def _fields(parts: Iterable[Condition]) -> frozenset[str]:
    return frozenset().union(*(one.fields for one in parts))


def _inside(part: Condition, *looser: type[Condition]) -> str:
    return f"({part})" if isinstance(part, looser) else str(part)


def _together(join: Callable[[Any, Any], Any], found: list[Sql], is_whole: bool) -> Sql:
    expression = reduce(join, (one.expression for one in found))
    return Sql(expression, is_whole and all(one.exact for one in found))
