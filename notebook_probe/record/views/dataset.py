"""The xarray.Dataset of a record: aliases name its quantities, modules select vectors, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import xarray as xr

from notebook_probe.record.format.schema import MODULE_OF_ELEMENT
from notebook_probe.record.format.source import read_aliases

__all__ = ["DataArray", "Dataset"]


class Dataset(xr.Dataset):
    """A `xarray.Dataset` with aliases: ``data["RankMe"]`` is ``data.effective_rank``.

    Derived datasets are of this class too. ``data.sel(module="fc1").input_channel_mean`` has only
    the channels of that module.
    """

    # xarray warns of subclasses without it.
    __slots__ = ()

    def recorded_name(self, name: str) -> str:
        """Return the variable's name, which may be given by an alias; else ``name`` itself."""
        if name in self.variables:
            return name
        every = self.variables.items()
        return next((str(own) for own, one in every if name in read_aliases(one.attrs)), name)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return _selectable(super().__getitem__(self.recorded_name(key)))
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
        """Select as xarray does; for per-module vectors, ``module`` selects the elements."""
        picked = super().sel(indexers, method, tolerance, drop, **indexers_kwargs)
        wanted = {**(indexers or {}), **indexers_kwargs}
        if "module" not in wanted or MODULE_OF_ELEMENT not in self.coords:
            return picked
        modules = self["module"].sel(module=wanted["module"])
        return picked.isel(element=_elements(picked[MODULE_OF_ELEMENT], modules))

    def __getattr__(self, name: str) -> Any:
        # Only after the usual lookup has failed, so that normal access costs nothing more.
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or self.recorded_name(name) == name:
                raise
        return self[name]


class DataArray(xr.DataArray):
    """A `xarray.DataArray` of per-module vectors, one after the other.

    ``data.input_channel_mean.sel(module="fc1")`` has only the channels of that module.
    """

    __slots__ = ()

    def sel(
        self,
        indexers: Mapping[Any, Any] | None = None,
        method: Any = None,
        tolerance: Any = None,
        drop: bool = False,
        **indexers_kwargs: Any,
    ) -> Self:
        """Select as xarray does; ``module`` selects the elements of modules, also by slice."""
        wanted = {**(indexers or {}), **indexers_kwargs}
        if "module" not in wanted or "element" not in self.dims:
            return super().sel(wanted, method, tolerance, drop)
        owners = self.coords[MODULE_OF_ELEMENT]
        names = np.array([*dict.fromkeys(owners.to_numpy().tolist()), None], object)[:-1]
        modules = xr.DataArray(names, {"module": names}).sel(module=wanted.pop("module"))
        picked = self.isel(element=_elements(owners, modules)).sel(wanted, method, tolerance, drop)
        return picked if modules.ndim or drop else picked.assign_coords(module=modules.item())


def _selectable(found: xr.DataArray) -> xr.DataArray:
    has_owners = MODULE_OF_ELEMENT in found.coords and found.name != MODULE_OF_ELEMENT
    return DataArray(found) if has_owners else found


def _elements(owners: xr.DataArray, modules: xr.DataArray) -> list[int]:
    """Places of the elements of these modules."""
    names = {*np.atleast_1d(modules.to_numpy()).tolist()}
    return [place for place, owner in enumerate(owners.to_numpy().tolist()) if owner in names]
