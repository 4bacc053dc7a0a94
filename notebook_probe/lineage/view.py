"""A table as a view shows it: plain JSON, with the orders that a click may ask for."""

from __future__ import annotations

from typing import Any

from notebook_probe.lineage.order import is_number, places, told
from notebook_probe.lineage.table import LineageTable

__all__ = ["MOST_COLUMNS", "view_of"]

MOST_COLUMNS = 40


def view_of(table: LineageTable) -> dict[str, Any]:
    """What is shown of a table, and in which order by which column.

    Returns
    -------
    dict
        ``runs`` (where they are), ``columns``, ``numeric`` of each, ``cells`` (run, column) as
        text, and ``up`` and ``down``: of each column the rows in its order.

    Examples
    --------
    >>> view = view_of(LineageTable.of([{"run": "r/a", "lr": 2}, {"run": "r/b", "lr": 1}]))
    >>> view["columns"], view["cells"], view["up"][1]
    (['run', 'lr'], [['a', '2'], ['b', '1']], [1, 0])
    """
    columns = table.shown()[:MOST_COLUMNS]
    values = [table.labels, *(table[one] for one in columns)]
    return {
        "runs": [str(row.get("run") or "") for row in table],
        "columns": ["run", *columns],
        "numeric": [all(one is None or _is_numeric(one) for one in column) for column in values],
        "cells": [[told(one) for one in row] for row in zip(*values, strict=True)],
        "up": [places(column) for column in values],
        "down": [places(column, descending=True) for column in values],
    }


def _is_numeric(value: object) -> bool:
    return is_number(value) or isinstance(value, float)
