"""One side of a trainer, and the callbacks for its steps."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

__all__ = ["Moments"]


class Moments:
    """Starts and ends of steps, with callbacks: an `Executor`.

    Parameters
    ----------
    model : nn.Module

    Attributes
    ----------
    step : int
        Updates completed before the step, or before the state that is evaluated.

    Examples
    --------
    >>> moments = Moments(nn.Linear(1, 1))
    >>> remove = moments.on_end(lambda: print("a step has ended"))
    >>> moments.end()
    a step has ended
    >>> remove()
    """

    def __init__(self, model: nn.Module) -> None:
        self.model, self.step = model, 0
        self._at_begin: tuple[Callable[[], None], ...] = ()
        self._at_end: tuple[Callable[[], None], ...] = ()

    def on_begin(self, act: Callable[[], None]) -> Callable[[], None]:
        """Call it as a step begins; returns what ends that."""
        # Replaced, not changed: one may remove itself while they are called.
        self._at_begin = (*self._at_begin, act)

        def remove() -> None:
            self._at_begin = tuple(kept for kept in self._at_begin if kept is not act)

        return remove

    def on_end(self, act: Callable[[], None]) -> Callable[[], None]:
        """Call it as a step is complete; returns what ends that."""
        self._at_end = (*self._at_end, act)

        def remove() -> None:
            self._at_end = tuple(kept for kept in self._at_end if kept is not act)

        return remove

    def begin(self) -> None:
        """Start a step."""
        for act in self._at_begin:
            act()

    def end(self) -> None:
        """Complete a step; not called after an error."""
        for act in self._at_end:
            act()
