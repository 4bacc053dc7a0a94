"""Lost rows: each place that gives one up counts it here, with the reason."""

from __future__ import annotations

import threading

__all__ = ["Losses"]


class Losses:
    """The one count of rows that a writer was given and will never write; for any thread.

    Attributes
    ----------
    n_rows : int
    why : str
        Reason of the last lost row, as text; empty if there is none.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.why = ""
        self._counting = threading.RLock()  # a finalizer may come in between, on the same thread

    def count(self, n_rows: int, why: str) -> None:
        """Note that ``n_rows`` are lost."""
        with self._counting:
            self.n_rows += n_rows
            self.why = why
