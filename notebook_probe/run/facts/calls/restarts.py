"""Loaders that are started again in each step, seen for a few steps where batches repeat."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import wraps
from typing import Any

from torch.utils.data import DataLoader

__all__ = ["LoaderRestarts"]

N_STEPS = 4
"""Steps in which restarts are counted."""


class LoaderRestarts:
    """Count of the iterators that a training thread makes of loaders with several batches.

    Attributes
    ----------
    found : int or None
        Number of batches of a loader that was started in each step, 0 if it does not say; None
        without such a loader.
    is_over : bool
        The count is complete.
    """

    def __init__(self) -> None:
        self._began: int | None = None
        self._counts: Counter[int] = Counter()
        self._lengths: dict[int, int] = {}
        self._ours: Any = None
        self._original: Any = None
        self.found: int | None = None
        self.is_over = False

    def look(self, step: int) -> None:
        """Begin to count before a step, and end some steps later."""
        if self.is_over:
            return
        if self._began is None:
            self._began = step
            self._begin()
        elif step - self._began >= N_STEPS:
            self.end()
            restarted = [one for one, n in self._counts.items() if n >= N_STEPS]
            self.found = next((self._lengths[one] for one in restarted), None)

    def end(self) -> None:
        """Restore the method of the loaders, unless other code has replaced it since."""
        self.is_over = True
        if self._ours is not None and vars(DataLoader).get("__iter__") is self._ours:
            setattr(DataLoader, "__iter__", self._original)  # noqa: B010
        self._ours = None

    def _begin(self) -> None:
        original, thread = DataLoader.__iter__, threading.get_ident()

        @wraps(original)
        def counted(loader: DataLoader[Any]) -> Iterator[Any]:
            if not self.is_over and threading.get_ident() == thread:
                self._note(loader)
            return original(loader)

        self._ours, self._original = counted, original
        setattr(DataLoader, "__iter__", counted)  # noqa: B010

    def _note(self, loader: DataLoader[Any]) -> None:
        try:
            n_batches = len(loader)
        except Exception:  # a stream, or a loader whose length fails
            n_batches = 0
        if n_batches != 1:
            self._lengths[id(loader)] = n_batches
            self._counts[id(loader)] += 1
