"""An array that grows at its end."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Growing"]

Scalar = TypeVar("Scalar", bound=np.generic)


class Growing(Generic[Scalar]):
    """A one-dimensional array that is appended to in amortized constant time."""

    def __init__(self, dtype: type[Scalar]) -> None:
        self._store = np.empty(64, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> npt.NDArray[Scalar]:
        """View of everything appended so far."""
        return self._store[: self._length]

    def append(self, values: npt.NDArray[Any]) -> None:
        wanted = self._length + len(values)
        if wanted > len(self._store):
            # Doubled, so that appending n values copies at most 2 n.
            larger = np.empty(max(wanted, 2 * len(self._store)), self._store.dtype)
            larger[: self._length] = self.values
            self._store = larger
        self._store[self._length : wanted] = values
        self._length = wanted
