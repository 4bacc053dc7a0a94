"""Modules that are read, by identity: a user's module may be equal to others, or have no hash."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable

from torch import nn

__all__ = ["ReadModules"]


class ReadModules:
    """Test whether a module is, or contains, one that is read; walks nothing until asked.

    Parameters
    ----------
    read : callable
        Returns the modules that are read.

    Examples
    --------
    >>> inner, other = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> modules = ReadModules(lambda: [inner])
    >>> modules.are_in(nn.Sequential(inner)), modules.are_in(other)
    (True, False)
    """

    def __init__(self, read: Callable[[], Iterable[nn.Module]]) -> None:
        self._read = read
        self._modules: dict[int, weakref.ref[nn.Module]] | None = None
        self._known: dict[int, tuple[weakref.ref[nn.Module], bool]] = {}

    def forget(self) -> None:
        """Look once more, as the model or its readings may have changed."""
        self._modules, self._known = None, {}

    def are_in(self, module: nn.Module) -> bool:
        """Return whether one of them is in a module, or is that module."""
        reference, found = self._known.get(id(module), (None, False))
        if reference is None or reference() is not module:
            found = any(map(self._is_read, module.modules()))
            self._known[id(module)] = weakref.ref(module), found
        return found

    def _is_read(self, module: nn.Module) -> bool:
        if self._modules is None:
            self._modules = {id(one): weakref.ref(one) for one in self._read()}
        known = self._modules.get(id(module))
        return known is not None and known() is module
