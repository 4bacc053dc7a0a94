"""A table of many runs: a row each, columns of all that any of them tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import filter as fnfilter
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.json_numbers import json_value
from notebook_probe.lineage.order import places, told
from notebook_probe.lineage.row import Readable, row_of
from notebook_probe.record.store.location import called_apart
from notebook_probe.tabular import html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIRST", "LineageTable", "labels_of"]

FIRST = ("state", "ranks", "steps", "loss.last")
"""Always shown, where there are such."""
APART = ("duration_s", "size_bytes", "created", "updated", "run_id")
"""Columns that differ in any two runs and say little; shown last."""
MOST_SHOWN = 24
"""Columns of a printed table; all are in `columns`."""

MOST_IN_HTML = 100

Row = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class LineageTable:
    """Table of runs, one row each, from their records.

    Values are plain: text, numbers, bools, lists, and None if a run has no value. Prints the
    columns in which runs differ; a notebook shows the others below them.

    Attributes
    ----------
    rows : tuple of mapping
        Rows by column; all have the same columns.

    Examples
    --------
    >>> table = LineageTable.of([
    ...     {"name": "a", "config.lr": 0.1, "eval.accuracy": 0.91, "config.size": 4},
    ...     {"name": "b", "config.lr": 0.2, "eval.accuracy": 0.93, "config.size": 4},
    ...     {"name": "c", "config.lr": 0.4, "config.size": 4},
    ... ])
    >>> table.sort("eval.accuracy", descending=True)
    run  config.lr  eval.accuracy
    b    0.2        0.93
    a    0.1        0.91
    c    0.4
    the same in all 3: config.size 4
    >>> table.where("eval.accuracy", lambda accuracy: accuracy > 0.92)["name"]
    ['b']
    """

    rows: tuple[Row, ...]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Return a table of rows with any columns; those of the first row are first."""
        given = [dict(row) for row in rows]
        columns = dict.fromkeys(key for row in given for key in row)
        whole = ({key: row.get(key) for key in columns} for row in given)
        return cls(tuple(MappingProxyType(row) for row in whole))

    @classmethod
    def read(cls, runs: Iterable[Readable]) -> Self:
        """Return a table of runs and opened records."""
        return cls.of(row_of(run) for run in runs)

    # ---------------------------------------------------------------- looking

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, ``"config.lr"``, ``"eval.accuracy"``."""
        return tuple(self.rows[0]) if self.rows else ()

    @property
    def differing(self) -> tuple[str, ...]:
        """Columns in which two runs tell different values."""
        return tuple(one for one in self.columns if len(self._values(one)) > 1)

    @property
    def same(self) -> dict[str, Any]:
        """Values that all runs have in common, if they have any."""
        told = {one: [*self._values(one).values()] for one in self.columns}
        return {one: values[0] for one, values in told.items() if len(values) == 1}

    @property
    def labels(self) -> list[str]:
        """Distinct labels of the runs: their names, else the ends of their locations."""
        return labels_of(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        """Values of a column, one for each run.

        Raises
        ------
        UnknownNameError
            There is no such column.
        """
        self._check(column)
        return [row[column] for row in self.rows]

    # ---------------------------------------------------------------- choosing

    def sort(self, column: str, descending: bool = False) -> Self:
        """Return the runs sorted by a column; those without a value, or with NaN, are last.

        Raises
        ------
        UnknownNameError
        """
        order = places(self[column], descending=descending)
        return replace(self, rows=tuple(self.rows[place] for place in order))

    def where(self, column: str, is_wanted: Callable[[Any], Any] | object) -> Self:
        """Return the runs with this value, or for which a function is true.

        Runs without a value are left out, and the function is not asked.

        Raises
        ------
        UnknownNameError

        Examples
        --------
        >>> table.where("config.optimizer", "SGD").where("loss.last", math.isfinite)
        ... # doctest: +SKIP
        """
        wanted = is_wanted if callable(is_wanted) else lambda value: value == is_wanted
        kept = zip(self.rows, self[column], strict=True)
        return replace(
            self, rows=tuple(row for row, value in kept if value is not None and wanted(value))
        )

    def select(self, *columns: str) -> Self:
        """Return a table of these columns, in this order: names, or patterns such as ``"eval.*"``.

        The location and the name of a run stay.

        Raises
        ------
        UnknownNameError
        """
        kept = list(dict.fromkeys(("run", "name", *self.matching(*columns))))
        kept = [one for one in kept if one in self.columns]
        rows = (MappingProxyType({one: row[one] for one in kept}) for row in self.rows)
        return replace(self, rows=tuple(rows))

    def matching(self, *wanted: str) -> list[str]:
        """Columns by names or patterns, each once.

        Raises
        ------
        UnknownNameError
            For a name; a pattern may match nothing.
        """
        found: dict[str, None] = {}
        for one in wanted:
            if "*" not in one:
                self._check(one)
            found |= dict.fromkeys([one] if "*" not in one else fnfilter(self.columns, one))
        return [*found]

    # ---------------------------------------------------------------- taking elsewhere

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with a row for each run; unknown values are missing."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows], columns=[*self.columns])

    def plain(self) -> list[dict[str, Any]]:
        """Return the rows as JSON has them; NaN and infinities are text."""
        return [{key: json_value(value) for key, value in row.items()} for row in self.rows]

    def __repr__(self) -> str:
        if not self.rows:
            return "no runs"
        columns = self.shown()[:MOST_SHOWN]
        cells = ([told(row[one]) for one in columns] for row in self.rows)
        named = zip(self.labels, cells, strict=True)
        lines = [("run", *columns), *([label, *rest] for label, rest in named)]
        same = ", ".join(f"{name} {told(value)}" for name, value in self._said_of_all().items())
        rare = ", ".join(self._said_of_some())
        below = [f"the same in all {len(self)}: {same}"] * bool(same)
        return "\n".join([text_table(lines), *below, *[f"only in some: {rare}"] * bool(rare)])

    def _repr_html_(self) -> str:
        if not self.rows:
            return "<p>no runs</p>"
        columns = self.shown()[:MOST_IN_HTML]
        cells = ([escape(told(row[one])) for one in columns] for row in self.rows)
        named = zip(map(escape, self.labels), cells, strict=True)
        lines = ([label, *rest] for label, rest in named)
        table = html_table(dict.fromkeys(["run", *columns], ""), lines)
        some = (
            [f"<p>only in some: {escape(', '.join(rare))}</p>"]
            if (rare := [*self._said_of_some()])
            else []
        )
        return "".join([table, _details(self._said_of_all(), len(self)), *some])

    def shown(self) -> list[str]:
        """Columns in the order of interest: first those in which runs differ.

        If several columns are equal for every run, the first is kept; locations are last.
        """
        differing = [one for one in self.differing if one not in ("run", *APART)]
        first = [one for one in FIRST if one in self.columns]
        last = [one for one in APART if one in self.differing]
        met = {repr(self.labels): ""}
        for one in [*first, *differing, *last]:
            met.setdefault(repr(self[one]), one)
        return [*filter(None, dict.fromkeys([*first, *met.values()]))]

    # ---------------------------------------------------------------- inside

    def _values(self, column: str) -> dict[str, Any]:
        """Return the values of a column, each once."""
        # By text, as lists have no hash, and 1, 1.0 and True would be one key.
        return {repr(value): value for value in self[column] if value is not None}

    def _said_of_all(self) -> dict[str, Any]:
        """Return the values of columns that are not shown, and equal in every run."""
        return {name: value for name, value in self._hidden() if self._n_values(name) == len(self)}

    def _said_of_some(self) -> Iterator[str]:
        """Yield columns that are not shown, and have one value in some runs and none in others."""
        for name, value in self._hidden():
            if (n := self._n_values(name)) < len(self):
                yield f"{name} {told(value)} ({n} of {len(self)})"

    def _hidden(self) -> list[tuple[str, Any]]:
        """Return the columns with one value that are not shown."""
        shown = {*self.shown(), "run"}
        return [(name, value) for name, value in self.same.items() if name not in shown]

    def _n_values(self, column: str) -> int:
        return sum(value is not None for value in self[column])

    def _check(self, column: str) -> None:
        if column not in self.columns:
            raise UnknownNameError(
                f"no column {column!r} in this table; {near(str(column), self.columns)}"
            )


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return distinct labels for the runs of these rows.

    Examples
    --------
    >>> labels_of([{"run": "r/a.zarr", "name": "net"}, {"run": "r/b.zarr", "name": "net"}])
    ['a', 'b']
    """
    names = [str(row.get("name") or "") for row in rows]
    return called_apart(names, [str(row.get("run") or "") for row in rows])


def _details(same: Mapping[str, Any], n: int) -> str:
    if not same:
        return ""
    cells = ([escape(name), escape(told(value))] for name, value in same.items())
    inside = html_table({"the same in all": "", "value": "20em"}, cells)
    return f"<details><summary>the same in all {n} runs</summary>{inside}</details>"
