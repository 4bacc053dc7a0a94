"""Search for series that have a value, reading each row of a run once."""

from __future__ import annotations

import numpy as np

from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import EVALUATION, is_of_loop
from notebook_probe.record.format.source import Source, StreamView, Variable

__all__ = ["COUNTS", "RecordedModules"]

COUNTS = ("calls", "eval_calls", "accumulations")
"""Quantities recorded along with the requested ones, for as many modules: listed last."""
VALUES_PER_LOOK = 2**22
"""Most values read of a quantity at a time: a long record is looked through in several looks."""


class RecordedModules:
    """The modules with at least one value of each quantity.

    A series is looked for until its first value; most have one in the first row or in the last.
    """

    def __init__(self) -> None:
        self._searches: dict[tuple[str, str], _Search] = {}
        self.modules: dict[str, list[str]] = {}
        """Quantity to modules in definition order; replaced, never changed."""
        self.logged: list[str] = []
        """The scalars that the loop logs, those of the training first; replaced, never changed."""

    def look(self, source: Source) -> list[RecordFormatError]:
        """Bring ``modules`` up to date with the source; return an error per series to give up."""
        news, errors = False, []
        for name, stream in source.streams.items():
            for variable in stream.variables:
                search = self._searches.setdefault((name, variable.name), _Search(variable))
                try:
                    news |= search.look(stream)
                except RecordFormatError as error:  # a damaged chunk; all others are shown
                    search.give_up()
                    errors.append(error)
        if news:
            self.logged = self._names_logged()
            self.modules = self._in_order(source)
        return errors

    def _names_logged(self) -> list[str]:
        keys = sorted(self._searches, key=lambda key: key[0].startswith(EVALUATION))
        found = (self._searches[key] for key in keys)
        return [*dict.fromkeys(one.quantity for one in found if one.is_logged and one.found)]

    def _in_order(self, source: Source) -> dict[str, list[str]]:
        found: dict[str, set[str]] = {}
        for search in sorted(self._searches.values(), key=_rank):
            if search.found:
                found.setdefault(search.quantity, set()).update(search.found)
        order = axis_order(source)
        return {
            quantity: [name for name in order if name in names] for quantity, names in found.items()
        }


class _Search:
    """Search for one quantity of one stream: rows read so far and modules found."""

    def __init__(self, variable: Variable) -> None:
        self.quantity = variable.name
        self.is_logged = is_of_loop(variable)
        self.found: set[str] = set()
        self._missing: list[str] = []
        self._n_modules = 0
        self._n_seen = 0
        self._is_given_up = False

    def give_up(self) -> None:
        """Find nothing more: its values cannot be read."""
        self._is_given_up = True

    def look(self, stream: StreamView) -> bool:
        """Read the new rows, and return whether another module was found."""
        if self._is_given_up:
            return False
        n_rows = stream.n_rows  # before the modules: these may only be more than the rows have
        modules = stream.modules
        self._missing += modules[self._n_modules :]
        self._n_modules = len(modules)
        if not self._missing or self._n_seen == n_rows:
            self._n_seen = n_rows
            return False
        n_found, start = len(self.found), self._n_seen
        # The last row first: mostly every module has a value there, and nothing else is read.
        if start == 0:
            self._take(stream, n_rows - 1, n_rows)
        # A search that finds nothing reads a bounded part per look, as a refresh must stay short.
        self._n_seen = min(n_rows, start + max(64, VALUES_PER_LOOK // max(1, len(self._missing))))
        self._take(stream, start, self._n_seen)
        return len(self.found) > n_found

    def _take(self, stream: StreamView, start: int, stop: int) -> None:
        if not self._missing:
            return
        values = stream.values(self.quantity, start, stop, self._missing)
        has_value = measured(values).any(axis=0)
        self.found.update(np.array(self._missing, object)[has_value])
        self._missing = [module for module in self._missing if module not in self.found]


def _rank(search: _Search) -> int:
    """Sort key: measured quantities first, then what the loop logs, then counts."""
    return 2 if search.quantity in COUNTS else int(search.is_logged)
