"""An xarray.Dataset whose quantities answer to their names in other systems, too."""

from __future__ import annotations

from typing import Any

import xarray as xr

from notebook_probe.record.format.source import read_aliases

__all__ = ["Dataset"]


class Dataset(xr.Dataset):
    """As xarray's, and whatever is derived of it: ``data["RankMe"]`` is ``data.effective_rank``."""

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

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or self.recorded_name(name) == name:
                raise
        return self[name]
