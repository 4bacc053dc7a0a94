"""A table as a view shows it: columns of plain JSON that can be sorted where they are shown."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from notebook_probe.lineage.order import text_of, told
from notebook_probe.lineage.table import LineageTable

__all__ = [
    "LineageColumn",
    "RunMarks",
    "TableView",
    "column_of",
    "columns_of",
    "marks_of",
    "view_of",
]

MOST_COLUMNS = 40
MOST_CELLS = 120_000
"""Cells that are sent first; a long table starts with fewer columns, others on request."""
FEWEST_COLUMNS = 12

Key = float | int | str | bool | None


class LineageColumn(TypedDict):
    """The values of one column, one for each run."""

    name: str
    numeric: bool
    keys: list[Key]
    """Sort keys: numbers, texts, False for NaN, None for a missing value."""
    texts: list[str]
    """Texts of the cells."""


class RunMarks(TypedDict):
    """Marks of one run."""

    at: int
    """Place of its row."""
    name: str
    tags: list[str]
    note: str


class TableView(TypedDict):
    """A table, and of which columns the view can ask for more."""

    runs: list[str]
    """Locations of the runs."""
    labels: list[str]
    names: list[str]
    """All columns there are."""
    shown: list[str]
    """Columns in which runs differ, as in a printed table."""
    columns: list[LineageColumn]
    """The first of these columns."""
    marks: list[RunMarks]
    """Marks of the runs that have any."""


def view_of(table: LineageTable) -> TableView:
    """Return the initial view of a table.

    Examples
    --------
    >>> view = view_of(LineageTable.of([{"run": "r/a", "lr": 2}, {"run": "r/b", "lr": 1}]))
    >>> view["labels"], view["columns"][0]["keys"], view["columns"][0]["texts"]
    (['a', 'b'], [2, 1], ['2', '1'])
    """
    most = min(MOST_COLUMNS, max(FEWEST_COLUMNS, MOST_CELLS // max(1, len(table))))
    shown = table.shown()[:most]
    return {
        "runs": [str(row.get("run") or "") for row in table],
        "labels": table.labels,
        "names": [*table.columns],
        "shown": shown,
        "columns": columns_of(table, shown),
        "marks": [one for one in marks_of(enumerate(table)) if one["tags"] or one["note"]],
    }


def marks_of(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> list[RunMarks]:
    """Return the marks of rows, each with its place.

    Examples
    --------
    >>> marks_of([(3, {"name": "a", "tags": ["good"]})])
    [{'at': 3, 'name': 'a', 'tags': ['good'], 'note': ''}]
    """
    return [
        {
            "at": at,
            "name": str(row.get("name") or ""),
            "tags": [str(one) for one in row.get("tags") or []],
            "note": str(row.get("note") or ""),
        }
        for at, row in rows
    ]


def columns_of(table: LineageTable, names: Iterable[str]) -> list[LineageColumn]:
    """Return these columns, if they exist."""
    return [column_of(one, table[one]) for one in names if one in table.columns]


def column_of(name: str, values: Sequence[Any]) -> LineageColumn:
    """Return one column.

    Examples
    --------
    >>> column_of("lr", [0.5, float("nan"), None, float("inf")])["keys"] == [
    ...     0.5, False, None, sys.float_info.max]
    True
    """
    return {
        "name": name,
        "numeric": all(one is None or isinstance(one, int | float) for one in values),
        "keys": [_key(one) for one in values],
        "texts": [told(one) for one in values],
    }


def _key(value: Any) -> Key:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        # False is the key of NaN.
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):  # which JSON has not
        return False if math.isnan(value) else math.copysign(sys.float_info.max, value)
    return value if isinstance(value, int | float) else text_of(value)
