"""Arrays of a dataset that are read only where they are looked at; no dask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

__all__ = ["Index", "lazy_variable"]

Index: TypeAlias = npt.NDArray[np.intp]


def lazy_variable(
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    read: Callable[..., npt.NDArray[Any]],
    attrs: Mapping[str, str | int] | None = None,
    dtype: str = "float32",
) -> xr.Variable:
    """Return a variable that reads its values by ``read``.

    Parameters
    ----------
    read : callable
        Called with one integer array per dimension; returns the values of their outer product.
    """
    array = indexing.LazilyIndexedArray(_LazyArray(shape, read, np.dtype(dtype)))
    return xr.Variable(dims, array, attrs)


class _LazyArray(BackendArray):
    def __init__(
        self, shape: tuple[int, ...], read: Callable[..., npt.NDArray[Any]], dtype: np.dtype[Any]
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._read = read

    def __deepcopy__(self, _: object) -> _LazyArray:
        return self  # nothing in it changes

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        # Outer indexing: each dimension is picked separately, which chunks can serve.
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._outer)

    def _outer(self, key: tuple[Any, ...]) -> Any:
        whole = [np.arange(n) for n in self.shape]
        picked = [places[k] for places, k in zip(whole, key, strict=True)]
        values = self._read(*(np.atleast_1d(places) for places in picked))
        return values[tuple(0 if np.ndim(places) == 0 else slice(None) for places in picked)]
