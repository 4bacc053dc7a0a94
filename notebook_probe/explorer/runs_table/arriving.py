"""Runs that start while a table is open, and rows that change: queried repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

__all__ = ["Arriving", "AskAgain"]

REST_S = 2.0
"""Least seconds between two queries."""

PART = 0.05
"""Maximum share of time for queries: a long table is queried less often."""

Row = Mapping[str, Any]
AskAgain: TypeAlias = Callable[[], Iterable[Row]]
"""Query for the present rows; an unchanged row is the same object, if that is known."""


class Arriving:
    """Query for new runs, at a pace that costs little; for one thread.

    Parameters
    ----------
    again : callable, optional
        The query; without it nothing arrives.

    Attributes
    ----------
    rest_s : float
        Seconds until the next query; 0 if there is none.
    problem : str
        Reason why the last query failed.
    """

    def __init__(self, again: AskAgain | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._again, self._clock = again, clock
        self._seen: dict[str, Row] = {}
        self._due_s = clock()
        self.rest_s = 0.0 if again is None else REST_S
        self.problem = ""

    def news(self) -> list[Row]:
        """Rows that are others than at the last question, the newest last; most often none."""
        begun_s = self._clock()
        if self._again is None or begun_s < self._due_s:
            return []
        try:
            rows = {str(row.get("run") or ""): row for row in self._again()}
            self.problem = ""
        except Exception as error:  # a database or a disk that has gone
            rows = self._seen
            self.problem = f"new runs cannot be looked for: {error}"
        news = [row for place, row in rows.items() if self._seen.get(place) is not row]
        self._seen = rows
        ended_s = self._clock()
        self.rest_s = max(REST_S, (ended_s - begun_s) / PART)
        self._due_s = ended_s + self.rest_s
        return news[::-1]
