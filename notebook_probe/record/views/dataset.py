"""The xarray.Dataset of a record: aliases name its quantities, modules select vectors, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import xarray as xr

from notebook_probe.record.format.schema import MODULE_OF_ELEMENT
from notebook_probe.record.format.source import read_aliases

__all__ = ["Dataset"]


class Dataset(xr.Dataset):
    """As xarray's, and so is what is derived of it: ``data["RankMe"]`` is ``data.effective_rank``.

    ``data.sel(module="fc1").input_channel_mean`` holds the channels of that module alone.
    """

    __slots__ = ()

    def recorded_name(self, name: str) -> str:
        """The name of the variable that may be called by an alias; else ``name`` itself."""
        if name in self.variables:
            return name
        every = self.variables.items()
        return next((str(own) for own, one in every if name in read_aliases(one.attrs)), name)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return super().__getitem__(self.recorded_name(key))
        if isinstance(key, list):
            own = [self.recorded_name(one) if isinstance(one, str) else one for one in key]
            return super().__getitem__(own)
        return super().__getitem__(key)

    def sel(
        self,
        indexers: Mapping[Any, Any] | None = None,
        method: Any = None,
        tolerance: Any = None,
        drop: bool = False,
        **indexers_kwargs: Any,
    ) -> Self:
        """As xarray's; of vectors of every module's own length ``module`` selects the elements."""
        picked = super().sel(indexers, method, tolerance, drop, **indexers_kwargs)
        wanted = {**(indexers or {}), **indexers_kwargs}
        if "module" not in wanted or MODULE_OF_ELEMENT not in self.coords:
            return picked
        modules = {*np.atleast_1d(self["module"].sel(module=wanted["module"]).to_numpy()).tolist()}
        owners = picked[MODULE_OF_ELEMENT].to_numpy().tolist()
        return picked.isel(element=[n for n, owner in enumerate(owners) if owner in modules])

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or self.recorded_name(name) == name:
                raise
        return self[name]
