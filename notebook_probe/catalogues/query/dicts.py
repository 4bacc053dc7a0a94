"""A condition from a dict: ``{field: value}`` or ``{field: {"$lt": value}}``, nested or dotted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from notebook_probe.catalogues.query.comparisons import Among, Compared, IsMissing
from notebook_probe.catalogues.query.condition import Condition
from notebook_probe.catalogues.query.fields import field_named
from notebook_probe.catalogues.query.logic import Not, all_of, any_of
from notebook_probe.catalogues.query.values import parsed
from notebook_probe.errors import QueryError, near

__all__ = ["OPERATORS", "from_dict"]

# Bounded, since a dict may contain itself; Python's own limit ends with a RecursionError.
DEEPEST = 50
SIGNS = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">=", "$ne": "!="}
OPERATORS = (*SIGNS, "$in")


def from_dict(where: Mapping[Any, Any]) -> Condition:
    """Return the conjunction of a dict's conditions.

    Raises
    ------
    QueryError
        An operator that is none, or a value that nothing compares with.

    Examples
    --------
    >>> print(from_dict({"params": {"model": {"depth": {"$gt": 3}}}, "state": "finished"}))
    config.model.depth > 3 and state == 'finished'
    """
    return all_of(_below("", where, 0))


def _below(above: str, where: Mapping[Any, Any], depth: int) -> Iterator[Condition]:
    if depth > DEEPEST:
        raise QueryError(f"where: {above[:40]}… goes deeper than {DEEPEST}")
    for key, value in where.items():
        name = f"{above}{_named(key, above)}"
        if not isinstance(value, Mapping):
            yield _compared(field_named(name), "==", value)
        # One operator is enough: a mixture is refused by name in _operated.
        elif any(isinstance(one, str) and one.startswith("$") for one in value):
            yield from (_operated(field_named(name), op, one) for op, one in value.items())
        elif not value:
            raise QueryError(f"where[{name!r}]={{}}; a value or one of {', '.join(OPERATORS)}")
        else:
            yield from _below(f"{name}.", value, depth + 1)


def _named(key: Any, above: str) -> str:
    if isinstance(key, str) and key.startswith("$"):
        raise QueryError(
            f"where: {key!r} is given where a field is expected; {{'params.lr': {{'$lt': 0.1}}}} "
            f"is such, and text says 'and', 'or' and 'not'"
        )
    if not isinstance(key, str) or not key:
        raise QueryError(f"where: {key!r} in {above or 'the dict'!r} names no field; text does")
    return key


def _operated(field: str, operator: Any, value: Any) -> Condition:
    if operator in SIGNS:
        return _compared(field, SIGNS[operator], value)
    if operator != "$in":
        raise QueryError(f"where[{field!r}]: no operator {operator!r}; {near(operator, OPERATORS)}")
    if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
        raise QueryError(f"where[{field!r}]: $in {value!r}"[:200] + "; a list is expected")
    values = tuple(value)
    among = Among(field, parsed([one for one in values if one is not None], f"where[{field!r}]"))
    # A missing value is stored as no entry, so None in a list is a separate condition.
    return any_of([IsMissing(field), among]) if None in values else among


def _compared(field: str, sign: str, value: Any) -> Condition:
    if value is None and sign in ("==", "!="):
        return IsMissing(field) if sign == "==" else Not(IsMissing(field))
    return Compared(field, sign, parsed(value, f"where[{field!r}]"))
