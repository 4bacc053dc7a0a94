"""List of callbacks, which are called in order until they are removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Callbacks"]

Call = TypeVar("Call", bound=Callable[..., None])


class Callbacks(Generic[Call]):
    """Callbacks of one kind, in the order in which they were added.

    An iteration is not affected by callbacks added or removed meanwhile.

    Attributes
    ----------
    every : tuple of callable
        Present callbacks.

    Examples
    --------
    >>> callbacks = Callbacks()
    >>> remove = callbacks.add(print)
    >>> for callback in callbacks.every:
    ...     callback("called")
    called
    >>> remove()
    >>> bool(callbacks)
    False
    """

    def __init__(self) -> None:
        self.every: tuple[Call, ...] = ()

    def add(self, call: Call) -> Callable[[], None]:
        """Take one in; returns its removal."""
        self.every = (*self.every, call)

        def remove() -> None:
            self.every = tuple(kept for kept in self.every if kept is not call)

        return remove

    def __bool__(self) -> bool:
        return bool(self.every)
