"""Series that a condition compares with: at each step the last value that was known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from notebook_probe.alerts.rolling import Doubles
from notebook_probe.record.format.lookup import recorded_name
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import ROOT, Floats, Steps, StreamView

__all__ = ["CELLS", "FollowedValues", "has", "names_of", "nearest", "rows_at_a_time", "start_row"]

Columns = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

CELLS = 1 << 20
"""Values that are looked at together: 8 MB."""


def has(view: StreamView, quantity: str) -> bool:
    """Return whether a stream has this quantity, by this name or an alias."""
    return any(
        quantity == one.name or (one.attrs and quantity in one.aliases)  # of logged ones thousands
        for one in view.variables
    )


def names_of(views: Iterable[StreamView]) -> frozenset[str]:
    """All quantities of some streams, by their names and aliases."""
    variables = (one for view in views for one in view.variables)
    return frozenset(name for one in variables for name in (one.name, *one.aliases))


def values_of(
    view: StreamView,
    quantity: str,
    start: int,
    stop: int,
    modules: Sequence[str] | None = None,
) -> Floats:
    """Rows of a quantity, by its name or an alias."""
    return view.values(recorded_name(quantity, view.variables), start, stop, modules)


def rows_at_a_time(n_modules: int) -> int:
    """Rows of so many modules that are looked at together."""
    return max(1, CELLS // max(1, n_modules))


def start_row(view: StreamView, step: int, n_before: int) -> int:
    """Return the row of the first step from ``step`` on, and some before it; found from the end."""
    first, n = view.n_rows, n_before
    while first and (first == view.n_rows or view.steps(first, first + 1)[0] >= step):
        first, n = max(0, first - n), 2 * n
    here = view.steps(first, first + n)
    return max(0, first + int(np.searchsorted(here, step)) - n_before)


class FollowedValues:
    """Values of one quantity at the steps of another's rows.

    Parameters
    ----------
    quantity : str
    first_step, n_before : int
        Rows of each stream from this step on are read, and some before it.
    """

    def __init__(self, quantity: str, first_step: int, n_before: int) -> None:
        self._quantity, self._first_step, self._n_before = quantity, first_step, n_before
        self._cursors: dict[str, _Cursor] = {}

    def at(self, views: Sequence[StreamView], steps: Steps, labels: Sequence[str]) -> Doubles:
        """Return the last values measured at these steps or before, of these modules or above them.

        Parameters
        ----------
        views : sequence of StreamView
            The first one that knows a value counts.
        steps : (row,)
            Greater than those asked for before.

        Returns
        -------
        (row, module)
        """
        out = np.full((len(steps), len(labels)), np.nan)
        for view in views:
            if not has(view, self._quantity):
                continue
            if view.name not in self._cursors:
                row = start_row(view, self._first_step, self._n_before)
                self._cursors[view.name] = _Cursor(row)
            found = self._cursors[view.name].read(view, self._quantity, steps, labels)
            out = np.where(np.isnan(out), found, out)
        return out


@dataclass(slots=True)
class _Cursor:
    """Position in one stream, and the last known values there."""

    row: int
    labels: tuple[str, ...] = ()
    last: Doubles = field(default_factory=lambda: np.empty(0))
    begun: Mask = field(default_factory=lambda: np.empty(0, bool))
    """Mask of the labels that have been measured."""
    _columns: tuple[tuple[int, int], list[Columns]] | None = None

    def read(self, view: StreamView, quantity: str, steps: Steps, labels: Sequence[str]) -> Doubles:
        """Values at the steps, of the labels or of the nearest above them that has one."""
        self._widen(view.modules)
        values, begun = self._advance(view, quantity, steps)
        out = np.full((len(steps), len(labels)), np.nan)
        is_open = np.ones(out.shape, bool)
        for columns in self._columns_of(labels):  # of the labels, then of those above them
            here = is_open & begun[:, columns] & (columns >= 0)
            out[here] = values[:, columns][here]
            is_open &= ~here
            if not is_open.any():
                break
        return out

    def _advance(self, view: StreamView, quantity: str, steps: Steps) -> tuple[Doubles, Mask]:
        """Return the known value of each column at the steps, and whether there was any."""
        out = np.repeat(self.last[None], len(steps), axis=0)
        begun = np.repeat(self.begun[None], len(steps), axis=0)
        size, n_rows = rows_at_a_time(len(self.labels)), view.n_rows
        while self.row < n_rows:
            stop = min(self.row + size, n_rows)
            own = view.steps(self.row, stop)
            n = int(np.searchsorted(own, steps[-1], side="right"))
            if not n:
                break
            values = values_of(view, quantity, self.row, self.row + n, self.labels)
            present = measured(values)
            known = _filled(self.last, values, present)
            seen = np.logical_or.accumulate(np.concatenate([self.begun[None], present]), axis=0)
            place = np.searchsorted(own[:n], steps, side="right")
            out[place > 0] = known[place[place > 0]]
            begun[place > 0] = seen[place[place > 0]]
            self.last, self.begun, self.row = known[-1], seen[-1], self.row + n
            if n < len(own):
                break
        return out, begun

    def _widen(self, labels: tuple[str, ...]) -> None:
        n_new = len(labels) - len(self.labels)
        if n_new > 0:
            self.labels = labels
            self.last = np.concatenate([self.last, np.full(n_new, np.nan)])
            self.begun = np.concatenate([self.begun, np.zeros(n_new, bool)])

    def _columns_of(self, labels: Sequence[str]) -> list[Columns]:
        """Return for each label its column, then that of the nearest one above it, ...; or -1."""
        key = len(labels), len(self.labels)
        if self._columns is None or self._columns[0] != key:
            own = {label: i for i, label in enumerate(self.labels)}
            ways = [[*_upwards(label, own)] for label in labels]
            ranks = zip_longest(*ways, fillvalue=-1)
            self._columns = key, [np.array(columns, np.intp) for columns in ranks]
        return self._columns[1]


def _filled(last: Doubles, values: npt.NDArray[np.float32], present: Mask) -> Doubles:
    """``last`` and the rows, each cell that was not measured as the one above it."""
    known = np.concatenate([last[None], values.astype(np.float64)])
    is_measured = np.concatenate([np.ones((1, len(last)), bool), present])
    rows = np.where(is_measured, np.arange(len(known))[:, None], 0)
    newest = np.maximum.accumulate(rows, axis=0)
    filled: Doubles = known[newest, np.arange(len(last))]
    return filled


def nearest(label: str, own: Mapping[str, int]) -> int:
    """Return the column of a module, or of the nearest one above it; -1 for none."""
    return next(_upwards(label, own), -1)


def _upwards(label: str, own: Mapping[str, int]) -> Iterator[int]:
    """Yield the columns of a module and of all above it, as far as there are any."""
    while label and label != ROOT:
        if label in own:
            yield own[label]
        label = label[: label.index("[")] if "[" in label else label.rpartition(".")[0]
    if ROOT in own:
        yield own[ROOT]
