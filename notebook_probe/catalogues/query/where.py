"""Conditions in any form that users give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from notebook_probe.catalogues.query.asked import FunctionCondition
from notebook_probe.catalogues.query.condition import Condition, Row
from notebook_probe.catalogues.query.dicts import from_dict
from notebook_probe.catalogues.query.logic import all_of
from notebook_probe.catalogues.query.parser import parse
from notebook_probe.errors import QueryError

__all__ = ["Where", "condition"]

Where: TypeAlias = str | Mapping[str, Any] | Callable[[Row], Any] | Condition | None
"""Text, a dict, a function of a row, or None for every run."""


def condition(where: Where) -> Condition:
    """Return the condition that a run has to meet.

    Parameters
    ----------
    where : str, dict, callable or None
        ``"params.lr < 1e-3 and state == 'finished'"``, with ``and``, ``or``, ``not``, ``in [...]``,
        ``has``, ``is missing``, ``is nan``; names with odd characters go in backticks. Or
        ``{"params.lr": {"$lt": 1e-3}, "state": "finished"}`` with ``$lt``, ``$lte``, ``$gt``,
        ``$gte``, ``$ne``, ``$in``, all of which is to hold. Or a function of a row.

    Returns
    -------
    Condition
        Frozen; a field that a run has not compares with nothing, and is unequal to everything.

    Raises
    ------
    QueryError
        Invalid text, its place, and what is allowed.

    Examples
    --------
    >>> asked = condition("params.lr < 1e-3 and tags has 'good'")
    >>> asked.matches({"config.lr": 1e-4, "tags": ["good"]}), asked.matches({"tags": ["good"]})
    (True, False)
    >>> asked == condition(str(asked))
    True
    """
    if where is None:
        return all_of(())
    if isinstance(where, Condition):
        return where
    if isinstance(where, str):
        return parse(where)
    if isinstance(where, Mapping):
        return from_dict(where)
    if callable(where):
        return FunctionCondition(where)
    raise QueryError(f"where={where!r}"[:200] + "; text, a dict, a function of a row or None")
