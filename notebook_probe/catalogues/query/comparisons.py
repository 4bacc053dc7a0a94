"""Conditions on one field: whether it is so of a row, and what a database can say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from notebook_probe.catalogues.query.condition import Condition, IndexTables, Row, Sql, Test
from notebook_probe.catalogues.query.fields import written
from notebook_probe.catalogues.query.flattened import (
    ELEMENTS,
    EXACT_BELOW,
    LONG_LIST,
    MOST_BYTES,
    as_double,
    as_key,
    field_key,
)
from notebook_probe.catalogues.query.values import ORDERS, kind_of, same, told
from notebook_probe.errors import QueryError

__all__ = ["Among", "Compared", "Has", "IsMissing", "IsNan"]

MOST_LISTED = 200
"""Maximum values in one SQL list."""


@dataclass(frozen=True, slots=True)
class _OfField(Condition):
    field: str

    @property
    def fields(self) -> frozenset[str]:
        return frozenset({self.field})

    @property
    def _key(self) -> str:
        return field_key(self.field)


@dataclass(frozen=True, slots=True)
class Compared(_OfField):
    """``field < value``; a run without the field does not match, except for ``!=``."""

    sign: str
    value: Any

    def __post_init__(self) -> None:
        if self.sign in ORDERS and kind_of(self.value) not in ("number", "text"):
            raise QueryError(f"{self}: numbers and text have an order, {told(self.value)} has none")

    def __str__(self) -> str:
        return f"{written(self.field)} {self.sign} {told(self.value)}"

    def matches(self, row: Row) -> bool:
        value = row.get(self.field)
        if self.sign in ORDERS:
            # Python raises for "a" < 1; here a value of another kind does not match.
            is_one_kind = kind_of(value) == kind_of(self.value)
            return is_one_kind and ORDERS[self.sign](value, self.value)
        return same(value, self.value) is (self.sign == "==")

    def sql(self, columns: IndexTables) -> Sql | None:
        exact = _is_exact(self.value)
        found = columns.any(self._key, _compares(self.sign, self.value))
        if self.sign != "!=":
            return Sql(found, exact)
        # The complement of rows that may be too many would lose rows that match.
        return Sql(~found, True) if exact else None


@dataclass(frozen=True, slots=True)
class Among(_OfField):
    """``field in [...]``: it is one of these."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{written(self.field)} in {told(self.values)}"

    def matches(self, row: Row) -> bool:
        value = row.get(self.field)
        return any(same(value, one) for one in self.values)

    def sql(self, columns: IndexTables) -> Sql | None:
        if len(self.values) > MOST_LISTED:
            # Too long for SQL: only rows with the field are selected, and `matches` decides.
            return Sql(columns.any(self._key, None), False)
        return Sql(columns.any(self._key, _one_of(self.values)), all(map(_is_exact, self.values)))


@dataclass(frozen=True, slots=True)
class Has(_OfField):
    """``field has value``: it is a list that holds the value, or a text that contains it."""

    value: Any

    def __str__(self) -> str:
        return f"{written(self.field)} has {told(self.value)}"

    def matches(self, row: Row) -> bool:
        found = row.get(self.field)
        if isinstance(found, str):
            return isinstance(self.value, str) and self.value in found
        return isinstance(found, list | tuple) and any(same(one, self.value) for one in found)

    def sql(self, columns: IndexTables) -> Sql | None:
        in_list = columns.any(self._key + ELEMENTS, _one_of((self.value,)))
        # SQL cannot search inside of cut texts and long lists, so these are all selected.
        return Sql(in_list | columns.any(self._key, _of_kind("text", LONG_LIST)), False)


@dataclass(frozen=True, slots=True)
class IsMissing(_OfField):
    """``field is missing``: the run does not tell it."""

    def __str__(self) -> str:
        return f"{written(self.field)} is missing"

    def matches(self, row: Row) -> bool:
        return row.get(self.field) is None

    def sql(self, columns: IndexTables) -> Sql | None:
        return Sql(~columns.any(self._key, None), True)


@dataclass(frozen=True, slots=True)
class IsNan(_OfField):
    """``field is nan``: it is a number that is none."""

    def __str__(self) -> str:
        return f"{written(self.field)} is nan"

    def matches(self, row: Row) -> bool:
        return kind_of(row.get(self.field)) == "nan"

    def sql(self, columns: IndexTables) -> Sql | None:
        return Sql(columns.any(self._key, _of_kind("nan")), True)


# -------------------------------------------------------------------- of an entry


def _is_exact(value: Any) -> bool:
    """Return whether an index stores it exactly: no other value is stored as the same."""
    kind = kind_of(value)
    if kind == "text":
        return len(as_key(value)) < MOST_BYTES
    return kind != "list" and abs(as_double(value)) < EXACT_BELOW


def _compares(sign: str, value: Any) -> Test:
    """Return an entry's test for a comparison; values cut or rounded may have become equal."""
    if sign not in ORDERS:
        return _one_of((value,))
    # `<` becomes `<=`: a stored value may have been rounded to the one compared with.
    order = ORDERS[sign if _is_exact(value) else f"{sign[0]}="]
    kind = kind_of(value)

    def test(entry: Any) -> Any:
        flat = (
            order(entry.text, as_key(value))
            if kind == "text"
            else order(entry.number, as_double(value))
        )
        return (entry.kind == kind) & flat

    return test


def _one_of(values: tuple[Any, ...]) -> Test:
    """Return an entry's test for being one of these."""

    def of(*kinds: str) -> list[Any]:
        return [one for one in values if kind_of(one) in kinds]

    def test(entry: Any) -> Any:
        texts = (entry.kind == "text") & entry.text.in_(map(as_key, of("text")))
        numbers = (entry.kind == "number") & entry.number.in_(map(as_double, of("number")))
        bools = (entry.kind == "bool") & entry.number.in_(map(as_double, of("bool")))
        # Lists are not stored as a whole: any list may be the one.
        lists = entry.kind.in_(("list", LONG_LIST) if of("list") else ())
        return texts | numbers | bools | lists

    return test


def _of_kind(*kinds: str) -> Test:
    return lambda entry: entry.kind.in_(kinds)
