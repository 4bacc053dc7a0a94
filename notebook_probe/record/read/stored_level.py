"""One level of a stream's pyramid in a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from notebook_probe.record.format.chunks import Extent
from notebook_probe.record.format.reductions import METHODS
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.read.growing_steps import check_growing

__all__ = ["StoredLevel"]


class _Array(Protocol):
    """Interface of an array of zarr, and of the `StoredArray` that checks what it reads."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def chunks(self) -> tuple[int, ...]: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class StoredLevel:
    """A LevelView of fixed length.

    Parameters
    ----------
    arrays : mapping of str to array
        ``step``, the columns' names and the reductions, under their names in the store.
    dim : str
        The dimension of the columns.
    """

    def __init__(self, size: int, arrays: Mapping[str, _Array], dim: str = "module") -> None:
        self.size = size
        self._arrays = arrays
        self.n_blocks = arrays["step"].shape[0]
        labels = np.asarray(arrays[dim][:]).tolist()
        self._columns = {label: place for place, label in enumerate(labels)}

    def extents(self) -> dict[str, Extent]:
        """Return shape and chunks of each array, for a writer that continues it."""
        return {name: Extent(array.shape, array.chunks) for name, array in self._arrays.items()}

    def has(self, quantity: str, module: str) -> bool:
        arrays = {f"{quantity}_{suffix}" for suffix in METHODS}
        return module_label(module) in self._columns and arrays <= self._arrays.keys()

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._steps[start:stop]

    @cached_property
    def _steps(self) -> Steps:
        """Steps of the blocks; cached, since every read of a range needs them."""
        found = np.asarray(self._arrays["step"][:])
        check_growing(f"{self.size} rows each: the pyramid", found)
        return found

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> dict[str, Floats]:
        places = np.array([self._columns[module_label(module)] for module in modules], np.intp)
        first, last = int(places.min()), int(places.max())
        return {
            suffix: self._arrays[f"{quantity}_{suffix}"][start:stop, first : last + 1][
                :, places - first
            ]
            for suffix in METHODS
        }
