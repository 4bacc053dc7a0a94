"""Records of a distributed job, one of each rank, read as one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from zarr.abc.store import Store

from notebook_probe.errors import (
    ProbeError,
    RecordFormatError,
    RecordWriteError,
    UnknownNameError,
    near,
    shown_as,
)
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.schema import SHARDS, module_label
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.read.stacked import stack_records
from notebook_probe.record.store.destination import new_files
from notebook_probe.record.store.location import ROOT_KEY, Location, RemoteStore, below, local_path
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.reached import reaching
from notebook_probe.record.views.chunked import ChunksLike
from notebook_probe.record.views.kept_rows import kept_rows
from notebook_probe.record.views.selection import Names

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OpenedRanks", "rank_folders", "rank_name"]

_FOLDER = re.compile(r"rank_(\d{5})")

NORMS = ("weight_norm", "grad_norm", "update_norm")
"""Norms whose squares add up over the shards of a weight."""


def rank_name(rank: int) -> str:
    """Return the folder of a rank's record.

    Examples
    --------
    >>> rank_name(3)
    'rank_00003'
    """
    return f"rank_{rank:05d}"


def rank_folders(location: Location) -> dict[int, Location]:
    """Return the locations of the ranks' records at ``location`` if that is not a record.

    Raises
    ------
    RecordFormatError
        A store cannot be reached.
    """
    folder = local_path(location)
    names = _of_store(location) if folder is None else _of_folder(folder)
    ranks = filter(None, map(_FOLDER.fullmatch, sorted(names)))
    return {int(rank[1]): below(location, rank[0]) for rank in ranks}


def _of_folder(folder: Path) -> list[str]:
    """Names of the records in a folder that is none itself."""
    if not folder.is_dir() or (folder / ROOT_KEY).exists():
        return []
    return [path.name for path in folder.iterdir() if (path / ROOT_KEY).is_file()]


def _of_store(location: Location) -> list[str]:
    """Names of the records below the URL of a store that holds none itself."""
    if isinstance(location, Store):
        return []
    try:
        engine = engine_of(location if isinstance(location, RemoteStore) else RemoteStore(location))
    except ProbeError:  # raised again, as text, by what opens it
        return []
    try:
        with reaching(str(location)):
            if engine.read(ROOT_KEY) is not None:
                return []
            tails = (key.partition("/") for key in list(engine.keys()))
            return [name for name, _, tail in tails if tail == ROOT_KEY]
    except FileNotFoundError:
        return []


@shown_as("run")
class OpenedRanks(OpenedRecord):
    """Records of all ranks of a job, with what each one measured along a ``rank`` dimension.

    ``data``, ``cube``, ``tree``, ``series`` and the tables are of all ranks, ``ranks[3]`` is the
    record of one. A reader of single streams, such as a panel, gets those of the first rank.

    Parameters
    ----------
    location : str or Path
        Folder with a ``rank_00000``, ``rank_00001``, ... each.

    Raises
    ------
    RecordFormatError
        No record is there, or one that cannot be read.
    """

    def __init__(
        self, location: Location, branch: int | None = None, chunks: ChunksLike | None = None
    ) -> None:
        folders = rank_folders(location)
        if not folders:
            raise RecordFormatError(f"no record at {location}")
        super().__init__(next(iter(folders.values())), branch, chunks)
        others = {rank: OpenedRecord(path, branch) for rank, path in folders.items()}
        self.ranks: Mapping[int, OpenedRecord] = MappingProxyType(others)
        folder = local_path(location)
        self.location = str(location if folder is None else folder)
        self._location = location

    @property
    def finished(self) -> bool:
        return all(record.finished for record in self.ranks.values())

    @property
    def is_written(self) -> bool:
        return any(record.is_written for record in self.ranks.values())

    @property
    def revision(self) -> int:
        """Number that grows whenever a rank has something new to read."""
        return super().revision + sum(record.revision for record in self.ranks.values())

    @property
    def data(self) -> xr.Dataset:
        """Dims (rank, module, step), of vectors one more; read where it is looked at.

        Ranks are joined on the union of their steps and modules, NaN where one has none.
        """
        return super().data

    def aligned(self) -> xr.Dataset:
        """Return the recorded data, unread; the encoding hints at suitable chunks."""
        return self._unread()

    def _unread(self) -> xr.Dataset:
        datasets = [record.to_xarray() for record in self.ranks.values()]
        opened = [partial(_same, dataset) for dataset in datasets]
        return stack_records("rank", list(self.ranks), opened).assign_attrs(self.attrs)

    def _tree(self) -> xr.DataTree:
        """Return the tree of each rank below the name of its folder, ``rank_00003/every_1``."""
        trees = {f"rank_{rank:05}": record.to_xarray("tree") for rank, record in self.ranks.items()}
        return xr.DataTree(children=trees)

    def whole_norms(self) -> xr.Dataset:
        """Return the norms of whole weights, gradients and updates; dims (module, step).

        With FSDP2 each rank records the norm of its shard: the squares of all ranks are added. A
        module that every rank has whole has the norm of the first rank, and one of whose weights
        only some are split has NaN.

        Returns
        -------
        xarray.Dataset
            Variables ``weight_norm``, ``grad_norm`` and ``update_norm``, if they are recorded.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").whole_norms().weight_norm  # doctest: +SKIP
        """
        data = self._unread()
        names = [name for name in NORMS if name in data]
        labels = data["module"].to_numpy().tolist()
        copies = json.loads(str(self.attrs.get(SHARDS, "{}")))
        by_label = {module_label(path): int(n) for path, n in copies.items()}
        n_copies = np.array([by_label.get(label, -1) for label in labels])
        found = {name: _whole(data[name].load(), n_copies) for name in names}
        return xr.Dataset(found, attrs=self.attrs)

    def series(self, module: str, quantity: str, *, kept: bool = False) -> xr.DataArray:
        """Return a quantity of one module of every rank, dims (rank, step), for vectors one more.

        The steps are the union over the ranks, NaN where a rank has none; with ``kept`` the union
        of their retained steps.

        Raises
        ------
        UnknownNameError
            No rank has recorded anything of that name.
        """
        data, label = self._unread(), module_label(module)
        quantity = self.recorded_name(quantity)
        if quantity not in data:
            close = near(quantity, map(str, data.data_vars))
            raise UnknownNameError(f"no quantity {quantity!r} is recorded; {close}")
        if label not in data["module"]:
            close = near(label, data["module"].to_numpy().tolist())
            raise UnknownNameError(f"no module {label!r} is recorded; {close}")
        column = data[quantity].sel(module=label).load()
        is_measured = measured(column.to_numpy()).any(axis=(0, *range(2, column.ndim)))
        column = column.isel(step=np.flatnonzero(is_measured))
        if not kept:
            return column
        looks = [record.snapshot() for record in self.ranks.values()]
        return kept_rows(column, [one for now in looks for one in now.streams_of(label, quantity)])

    def iter_dataframes(
        self,
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yield the tables of each rank, with a column ``rank`` in front."""
        for rank, record in self.ranks.items():
            for part in record.iter_dataframes(quantity, module, start, stop):
                part.insert(0, "rank", rank)
                yield part

    def to_npy(self, folder: str | PathLike[str], *names: Any, **selected: Any) -> list[Path]:
        """Write the files of each rank, in a folder such as ``rank_00003``."""
        target = new_files(folder)
        return [
            path
            for rank, record in self.ranks.items()
            for path in record.to_npy(target / f"rank_{rank:05}", *names, **selected)
        ]

    def to_netcdf(self, path: str | PathLike[str], *names: Any, **selected: Any) -> Path:
        """Refuse: a file holds one rank's groups, ``ranks[3].to_netcdf(path)``."""
        raise RecordWriteError(
            f"{self.location} has the records of {len(self.ranks)} ranks; write one of them: "
            f".ranks[{next(iter(self.ranks))}].to_netcdf({str(path)!r})"
        )


def _whole(norms: xr.DataArray, n_copies: npt.NDArray[np.int_]) -> xr.DataArray:
    """Combine the norms of all ranks, as often as there are copies; -1 for a whole module."""
    values = norms.transpose("rank", "module", "step").to_numpy().astype(np.float64)
    copies = np.where(n_copies > 0, n_copies, np.nan)[:, None]
    added = np.sqrt(np.square(values).sum(axis=0) / copies)
    whole = np.where((n_copies < 0)[:, None], values[0], added)
    like = norms.isel(rank=0, drop=True).transpose("module", "step")
    return like.copy(data=whole.astype(np.float32))


def _same(data: xr.Dataset) -> xr.Dataset:
    return data
