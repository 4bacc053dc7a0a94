"""The engine ``"notebook_probe"`` of xarray: a record opened as its joined dataset."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import xarray as xr
from xarray.backends import BackendEntrypoint

from notebook_probe.record.read.ranks import OpenedRanks, rank_folders
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["RecordEngine"]


class RecordEngine(BackendEntrypoint):
    """Engine of ``xarray.open_dataset(path, engine="notebook_probe")``: `OpenedRun.data`.

    Examples
    --------
    >>> data = xarray.open_dataset("runs/first.zarr", engine="notebook_probe")  # doctest: +SKIP
    >>> data.weight_norm.sel(module="fc1")  # doctest: +SKIP
    """

    description = "Open a record of notebook_probe, all its streams joined"
    open_dataset_parameters: ClassVar[Any] = ("filename_or_obj", "drop_variables", "branch")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        branch: int | None = None,
    ) -> xr.Dataset:
        """Return the dataset; values are read on access."""
        given = filename_or_obj
        place = Path(given) if isinstance(given, PathLike) else given
        opened = OpenedRanks if rank_folders(place) else OpenedRecord
        data = opened(place, branch).aligned()
        names = [drop_variables] if isinstance(drop_variables, str) else [*(drop_variables or ())]
        return data.drop_vars(names, errors="ignore")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return False: a record is a zarr store, which xarray's own engine opens by group."""
        return False
