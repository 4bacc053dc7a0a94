"""The first values of a series, with which a condition may compare however late it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from notebook_probe.alerts.following import has, values_of
from notebook_probe.alerts.rolling import Doubles, median
from notebook_probe.record.format.source import Steps, StreamView

__all__ = ["FirstLoss", "FirstRows"]

N_FIRST = 10
"""Number of values."""


class FirstRows:
    """The median of the first measured values of a quantity, for each module.

    Parameters
    ----------
    quantity : str
    is_wanted : bool
        If not, nothing is read.
    """

    def __init__(self, quantity: str, is_wanted: bool) -> None:
        self._quantity, self._n = quantity, N_FIRST if is_wanted else 0
        self._row = 0
        self._values = np.empty((0, 0))  # (value, module), NaN where there are fewer
        self._known_at = np.empty(0)  # row of the last of them; infinite before

    def known(self, stream: StreamView, start: int, stop: int) -> Doubles:
        """Return the medians in these rows, (row, module); NaN before all values are known."""
        n_modules = len(stream.modules)
        if self._n and (len(self._known_at) < n_modules or np.isinf(self._known_at).any()):
            self._read(stream, stop)
        rows = np.arange(start, stop)[:, None]
        if not self._n or not self._values.size:
            return np.full((stop - start, n_modules), np.nan)
        return np.where(rows >= self._known_at, median(self._values, axis=0), np.nan)

    def whole(self, stream: StreamView) -> tuple[float, float]:
        """Return the row of the last of the first values, and their median, of a module.

        The row is infinite before all values of one are known.
        """
        self._read(stream, stream.n_rows)
        column = int(np.argmin(self._known_at))
        return self._known_at[column] - 1, float(median(self._values, axis=0)[column])

    def _read(self, stream: StreamView, stop: int) -> None:
        self._widen(len(stream.modules))
        table = values_of(stream, self._quantity, self._row, stop)[:, : len(stream.modules)]
        rows = np.flatnonzero((np.isfinite(table) & np.isinf(self._known_at)).any(axis=1))
        for row, values in zip(rows + self._row, table[rows].astype(np.float64), strict=True):
            for column in np.flatnonzero(np.isfinite(values) & np.isinf(self._known_at)):
                n = int(np.count_nonzero(np.isfinite(self._values[:, column])))
                self._values[n, column] = values[column]
                if n + 1 == self._n:
                    self._known_at[column] = row + 1
        self._row = stop

    def _widen(self, n_modules: int) -> None:
        n_new = n_modules - self._values.shape[1]
        if n_new > 0:
            kept = self._values if self._values.size else np.empty((self._n, 0))
            self._values = np.pad(kept, ((0, 0), (0, n_new)), constant_values=np.nan)
            self._known_at = np.pad(self._known_at, (0, n_new), constant_values=np.inf)


class FirstLoss:
    """The median of the first measured losses, for a rule whose first quantity is another one.

    Parameters
    ----------
    quantity : str
        Name of the loss in the record; empty if the condition does not ask for it.
    """

    def __init__(self, quantity: str) -> None:
        self._quantity, self._rows = quantity, FirstRows(quantity, bool(quantity))
        self._since, self._value = np.inf, np.nan

    def at(self, streams: Sequence[StreamView], steps: Steps) -> Doubles:
        """Return the median at these steps, (row,); NaN before all losses are known."""
        if self._quantity and np.isinf(self._since):
            for one in streams:
                if has(one, self._quantity) and one.n_rows:
                    self._look(one)
                    break
        return np.where(steps >= self._since, self._value, np.nan)

    def _look(self, stream: StreamView) -> None:
        row, value = self._rows.whole(stream)
        if np.isfinite(row):
            self._since, self._value = float(stream.steps(int(row), int(row) + 1)[0]), value
