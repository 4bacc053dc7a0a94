"""Owners of logged series: the loop, or one of several collectors."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable, Mapping

from notebook_probe.errors import ReplacedWarning
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["SeriesOwners"]


class SeriesOwners:
    """Owner of each logged name: the first writer that logs it, until that is gone.

    Parameters
    ----------
    loop : object
        Represents the training loop. All writers are referenced weakly; the names of one that is
        gone are free.

    Attributes
    ----------
    has_collectors : bool
        Another writer than the loop has logged.
    """

    def __init__(self, loop: object) -> None:
        self._loop = weakref.ref(loop)
        self._owners: dict[str, weakref.ref[object]] = {}
        self.has_collectors = False

    def claim(self, names: Iterable[str]) -> None:
        """Note names that only the loop has logged so far."""
        self._owners.update(dict.fromkeys(names, self._loop))

    def named(
        self, scalars: Mapping[str, Number], collector: object | None = None
    ) -> dict[str, Number]:
        """Return numbers of a collector, or of the loop, under the names of its series."""
        writer = self._loop if collector is None else weakref.ref(collector)
        self.has_collectors |= collector is not None
        return {self._own(name, writer): value for name, value in scalars.items()}

    def _own(self, name: str, writer: weakref.ref[object]) -> str:
        number, own = 1, name
        while not self._is_free(own, writer):
            number += 1
            own = f"{name}_{number}"
        if own != name and self._owners.get(own) != writer:
            _warn(name, own)
        self._owners[own] = writer
        return own

    def _is_free(self, name: str, writer: weakref.ref[object]) -> bool:
        owner = self._owners.get(name)
        return owner is None or owner == writer or owner() is None


def _warn(name: str, own: str) -> None:
    warnings.warn(
        f"series {name!r} has another writer, so that this one has a name of its own in the "
        f"record, {own!r}, as in run.series('', {own!r})",
        ReplacedWarning,
        stacklevel=6,
    )
