"""Bounds for reading files that may be damaged, hostile or huge."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Allowance", "SpentError"]

MOST_VALUES = 4_000_000
MOST_BYTES = 1 << 30
MOST_SECONDS = 8.0
MOST_NAMES = 10_000
CHECKED_EVERY = 1024
"""Values between two looks at the clock."""


class SpentError(Exception):
    """Reason why reading stops before the end, as text."""


class Allowance:
    """Amount of work that one run may take: bytes, values, names and seconds.

    Parameters
    ----------
    clock : callable, optional
        Time in seconds.

    Examples
    --------
    >>> allowance = Allowance()
    >>> allowance.take_bytes(1 << 31)
    Traceback (most recent call last):
    notebook_probe.old_runs.allowance.SpentError: it is larger than 1024 MiB
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock() + MOST_SECONDS
        self._n_values = self._n_bytes = 0

    def take_values(self, n: int = 1) -> None:
        """Count values that are kept."""
        before = self._n_values
        self._n_values += n
        if self._n_values > MOST_VALUES:
            raise SpentError(f"at most {MOST_VALUES:,} numbers of a run are read")
        if before // CHECKED_EVERY != self._n_values // CHECKED_EVERY:
            self.check_time()

    def take_bytes(self, n: int) -> None:
        """Count bytes that are read."""
        self._n_bytes += n
        if self._n_bytes > MOST_BYTES:
            raise SpentError(f"it is larger than {MOST_BYTES >> 20} MiB")
        self.check_time()

    def check_names(self, n: int) -> None:
        """Check the number of different names."""
        if n > MOST_NAMES:
            raise SpentError(f"at most {MOST_NAMES:,} names of a run are read")

    def check_time(self) -> None:
        """Check that there is time left."""
        if self._clock() > self._ends:
            raise SpentError(f"reading stops after {MOST_SECONDS:g} s")
