"""Functions that are called one after another, each until it is taken out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Callbacks"]

Call = TypeVar("Call", bound=Callable[..., None])


class Callbacks(Generic[Call]):
    """Those of one kind, in the order in which they came.

    Whoever goes through them while one is added or taken out sees those that were there before.

    Examples
    --------
    >>> callbacks = Callbacks()
    >>> remove = callbacks.add(print)
    >>> for callback in callbacks:
    ...     callback("called")
    called
    >>> remove()
    >>> bool(callbacks)
    False
    """

    def __init__(self) -> None:
        self._calls: tuple[Call, ...] = ()

    def add(self, call: Call) -> Callable[[], None]:
        """Take one in; returns its removal."""
        self._calls = (*self._calls, call)

        def remove() -> None:
            self._calls = tuple(kept for kept in self._calls if kept is not call)

        return remove

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def __bool__(self) -> bool:
        return bool(self._calls)
