"""Modules of a model, by identity: a user's module may be equal to others, or have no hash."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from torch import nn

__all__ = ["ModelParts"]


class ModelParts:
    """Test whether a module is, or contains, a part of a model; walks nothing until asked.

    Parameters
    ----------
    model : reference to nn.Module

    Examples
    --------
    >>> inner, other = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> parts = ModelParts(lambda: inner)
    >>> parts.are_in(nn.Sequential(inner)), parts.are_in(other)
    (True, False)
    """

    def __init__(self, model: Callable[[], nn.Module | None]) -> None:
        self._model = model
        self._parts: dict[int, weakref.ref[nn.Module]] = {}
        self._known: dict[int, tuple[weakref.ref[nn.Module], bool]] = {}

    def forget(self) -> None:
        """Look once more, as the model may have changed."""
        self._parts, self._known = {}, {}

    def are_in(self, module: nn.Module) -> bool:
        """Return whether a part of the model is in a module, or is that module."""
        reference, found = self._known.get(id(module), (None, False))
        if reference is None or reference() is not module:
            found = any(map(self._is_part, module.modules()))
            self._known[id(module)] = weakref.ref(module), found
        return found

    def _is_part(self, module: nn.Module) -> bool:
        model = self._model()
        if not self._parts and model is not None:
            self._parts = {id(one): weakref.ref(one) for one in model.modules()}
        part = self._parts.get(id(module))
        return part is not None and part() is module
