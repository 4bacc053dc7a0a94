"""The rows of a table that is open: each keeps its place, and what comes is put behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from notebook_probe.lineage.table import FIRST, LineageTable, labels_of
from notebook_probe.lineage.view import MOST_COLUMNS, TableView, column_of, marks_of, view_of

__all__ = ["OpenRows"]

Row = Mapping[str, Any]


class OpenRows:
    """Known rows of the runs, their labels, and the columns.

    Parameters
    ----------
    table : LineageTable
        The table as opened.

    Attributes
    ----------
    rows : list of dict
    view : TableView
        Initial view.
    standard : list of str
        Columns shown by default: those in which runs differ.
    """

    def __init__(self, table: LineageTable) -> None:
        self.rows = [dict(row) for row in table]
        self.view: TableView = view_of(table)
        self.standard = [*self.view["shown"]]
        self._labels = [*self.view["labels"]]
        self._names = dict.fromkeys(self.view["names"])
        self._given = dict.fromkeys(self.standard)
        self._apart = _Apart(self.rows)
        self._places = {run: at for at, run in enumerate(self.view["runs"])}

    def given(self, names: Iterable[str]) -> None:
        """Note that some view has these columns from now on."""
        self._given |= dict.fromkeys(names)

    def table(self) -> LineageTable:
        """Return the current rows as a table."""
        return LineageTable.of(self.rows)

    def take_in(self, told: Iterable[Row]) -> list[int]:
        """Merge rows; return the places of rows that are new, changed or relabeled."""
        found: dict[int, None] = {}
        n, is_renamed = len(self.rows), False
        for row in told:
            at = self._places.setdefault(str(row.get("run") or ""), len(self.rows))
            if at == len(self.rows):
                self.rows.append({})
                self._labels.append("")
            elif not _differs(row, self.rows[at]):
                continue
            is_renamed |= row.get("name") != self.rows[at].get("name")
            self.rows[at] = dict(row)
            self._names |= dict.fromkeys(row)
            found[at] = None
        if self._apart.take_in(self.rows[at] for at in found) or not self.standard:
            self.standard = self._shown()
            self._given |= dict.fromkeys(self.standard)
        if len(self.rows) > n or is_renamed:
            found |= dict.fromkeys(self._called())
        return sorted(found)

    def message(self, places: list[int]) -> dict[str, Any]:
        """Return the message with some rows."""
        rows = [self.rows[at] for at in places]
        names = [one for one in self._given if one in self._names]
        return {
            "type": "rows",
            "at": places,
            "runs": [str(row.get("run") or "") for row in rows],
            "labels": [self._labels[at] for at in places],
            "columns": [column_of(name, [row.get(name) for row in rows]) for name in names],
            "names": [*self._names][len(self.view["names"]) :],
            "shown": self.standard,
            "marks": marks_of(zip(places, rows, strict=True)),
        }

    def _called(self) -> list[int]:
        """Relabel the runs, since a new one may clash; return the places of changed labels."""
        before, self._labels = self._labels, labels_of(self.rows)
        pairs = enumerate(zip(before, self._labels, strict=True))
        return [at for at, (one, other) in pairs if one != other]

    def _shown(self) -> list[str]:
        """Columns in which runs differ, as in a table that is opened now."""
        kept = {"run", "name", *FIRST, *self.standard, *self._apart.names}
        names = [one for one in self._names if one in kept]
        rows = ({name: row.get(name) for name in names} for row in self.rows)
        return LineageTable.of(rows).shown()[:MOST_COLUMNS]


class _Apart:
    """Names that have different values in two runs, collected row by row."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.names: set[str] = set()
        self._texts: dict[str, str] = {}
        self.take_in(rows)

    def take_in(self, rows: Iterable[Row]) -> bool:
        """Add rows; return whether there are more such names than before."""
        n = len(self.names)
        for row in rows:
            for name, value in row.items():
                if value is None or name in self.names:
                    continue
                text = repr(value)
                if self._texts.setdefault(name, text) != text:
                    self.names.add(name)
        return len(self.names) > n


def _differs(row: Row, known: Row) -> bool:
    """Return whether a row has changed; a missing value equals None."""
    if any(known.get(name) is not one and known.get(name) != one for name, one in row.items()):
        return True
    return any(one is not None and name not in row for name, one in known.items())
