"""A condition that only a function of the user's knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from notebook_probe.catalogues.query.condition import Condition, IndexTables, Row, Sql
from notebook_probe.errors import QueryError

__all__ = ["FunctionCondition"]


@dataclass(frozen=True, slots=True)
class FunctionCondition(Condition):
    """Condition by a function of a row, without SQL."""

    function: Callable[[Row], Any]

    @property
    def fields(self) -> frozenset[str]:
        # Unknown: the function is not looked into, so no field can be refused as misspelled.
        return frozenset()

    def __str__(self) -> str:
        return f"<{getattr(self.function, '__qualname__', repr(self.function))}>"

    def matches(self, row: Row) -> bool:
        try:
            return bool(self.function(row))
        except Exception as error:  # the user's own
            raise QueryError(
                f"where={self}: of the run {row.get('run')!r} it raised "
                f"{type(error).__name__}: {error}; row.get(field) is None where a run has no value"
            ) from error

    def sql(self, columns: IndexTables) -> Sql | None:
        return None
