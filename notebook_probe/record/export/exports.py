"""Getting a record out: tables, netCDF, .npy and one packed file, from any Source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from notebook_probe.checks import file_ending
from notebook_probe.errors import RecordLockedError, RecordWriteError, shown_as
from notebook_probe.record.export.netcdf import write_netcdf
from notebook_probe.record.export.netcdf_groups import (
    of_arrays,
    of_elements,
    of_names,
    of_numbers,
    of_vectors,
)
from notebook_probe.record.export.npy import write_npy
from notebook_probe.record.export.pack import pack
from notebook_probe.record.format.source import Event
from notebook_probe.record.store.destination import new_file, new_files
from notebook_probe.record.store.location import ROOT_KEY, local_path
from notebook_probe.record.views import joined
from notebook_probe.record.views.named_scalars import ByName
from notebook_probe.record.views.selection import Names, select
from notebook_probe.record.views.tensors import tensors
from notebook_probe.record.views.xarray_views import RunSource, XarrayViews

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Exports"]

NETCDF = (".nc", ".nc4", ".h5")
"""Endings by which xarray and other readers choose netCDF-4."""


class _Recorded(RunSource, Protocol):
    """Parts of the source that the exports need."""

    @property
    def all_events(self) -> tuple[Event, ...]: ...
    def iter_dataframes(
        self,
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[pd.DataFrame]: ...


@shown_as("run")
class Exports(XarrayViews):
    """Taking a record elsewhere, while it grows or later.

    Every export takes names of quantities and modules, or patterns with ``*``, and a range of
    steps ``start <= step < stop``; all by default.
    """

    def to_dataframe(
        self: _Recorded,
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
    ) -> pd.DataFrame:
        """Return a tidy table, one row per measurement, sorted by step, module and quantity.

        Parameters
        ----------
        quantity, module : str or iterable of str, optional
            Names, or patterns such as ``"layer3.*"``.
        start, stop : int, optional
            Steps from ``start`` up to but not including ``stop``.

        Returns
        -------
        pandas.DataFrame
            Columns ``step`` (int64), ``time``, ``module`` and ``quantity`` (categorical), ``value``
            (float32). Vectors have a row per element, and a column more: the coordinate along their
            axis, such as ``bin``, or ``index_in_module``. A cell that was not measured has no row;
            a measured NaN has one. For arrays of other shapes see `to_npy`.

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded.
        ValueError
            Steps that are no whole numbers from 0, or a ``stop`` below ``start``.

        Examples
        --------
        >>> run.to_dataframe("weight_norm", "layer3.*").to_csv("norms.csv")  # doctest: +SKIP
        """
        import pandas as pd

        tables = list(self.iter_dataframes(quantity, module, start, stop))
        return pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]

    def iter_dataframes(
        self: _Recorded,
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Return the rows of `to_dataframe` a few megabytes at a time, for runs larger than memory.

        Examples
        --------
        >>> for part in run.iter_dataframes():  # doctest: +SKIP
        ...     part.to_csv("run.csv", mode="a", header=False)
        """
        from notebook_probe.record.export.frames import frames

        now = self.snapshot()
        streams, vectors = now.history
        ragged = now.branches.history(now.ragged)
        selection = select([*streams, *vectors], ragged, quantity, module, start, stop)
        return frames(joined.join(streams, now.modules, vectors, ragged), selection)

    def to_netcdf(
        self: _Recorded,
        path: str | PathLike[str],
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
        *,
        overwrite: bool = False,
    ) -> Path:
        """Write one netCDF-4 file with a group per stream, as in ``tree``; returns its path.

        Read it with ``xarray.open_datatree(path)`` or ``open_dataset(path, group="every_1")``.
        Needs h5netcdf: ``pip install 'notebook-probe[netcdf]'``. Memory does not grow with the run.

        Raises
        ------
        RecordWriteError
            The file is there already, or cannot be written; nothing half-written stays.
        MissingExtraError
            h5netcdf is not installed.
        UnknownNameError
            Nothing of that name is recorded.
        ValueError
            A path that does not end with ``.nc``, ``.nc4`` or ``.h5``; steps that are no whole
            numbers from 0, or a ``stop`` below ``start``.
        """
        file_ending("path", path, NETCDF)
        now = self.snapshot()
        every = [*now.streams, *map(ByName, now.named), *now.vectors, *now.blobs]
        selection = select(every, now.ragged, quantity, module, start, stop)
        groups = [
            *(of_numbers(stream, selection) for stream in now.streams),
            *(of_names(stream, selection) for stream in now.named),
            *(of_vectors(stream, selection) for stream in now.vectors),
            *(of_elements(stream, selection) for stream in now.ragged),
            *(of_arrays(view, selection) for view in now.blobs if selection.modules_of(view)),
        ]
        with new_file(path, overwrite=overwrite) as partial:
            write_netcdf(partial, now.attrs, groups, self.modules, self.all_events)
        return Path(path)

    def to_npy(
        self: _Recorded,
        folder: str | PathLike[str],
        quantity: Names = None,
        module: Names = None,
        start: int = 0,
        stop: int | None = None,
    ) -> list[Path]:
        """Write vectors and arrays as ``<folder>/<quantity>/<module>.npy``; returns the paths.

        The first axis is the step; the steps are in ``<module>.step.npy``. Names are
        percent-encoded, and ``index.json`` lists the contents of each file. Numbers are written if
        their quantity is named.

        Raises
        ------
        RecordWriteError
            The folder has something in it, or cannot be written.
        UnknownNameError
            Nothing of that name is recorded.
        ValueError
            Steps that are no whole numbers from 0, or a ``stop`` below ``start``.
        """
        now = self.snapshot()
        streams, vectors = now.history
        if quantity is None:
            now, streams = replace(now, streams=()), []
        every, ragged = [*streams, *vectors, *now.blobs], now.branches.history(now.ragged)
        selection = select(every, ragged, quantity, module, start, stop)
        return write_npy(new_files(folder), tensors(now, selection), selection)

    def pack(self: _Recorded, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the finished record into one file, such as ``"run.zarr.zip"``; returns its path.

        ``notebook_probe.open_run`` opens it, and so does plain ``xarray.open_zarr`` of a zarr
        ``ZipStore``.

        Raises
        ------
        RecordLockedError
            The run is still being recorded; close it first.
        RecordWriteError
            The file is there already, or cannot be written; or the record is in no local folder.
        ValueError
            The path does not end with ``.zip``.
        """
        file_ending("path", path, (".zip",))
        folder = local_path(self.location)
        if folder is None or not (folder / ROOT_KEY).is_file():
            raise RecordWriteError(
                f"{self.location} is no folder with a single record; no other can be packed"
            )
        with new_file(path, overwrite=overwrite) as partial:
            try:
                pack(folder, partial, finished=self.finished)
            except RecordLockedError as error:
                raise RecordLockedError(f"close the run before packing it: {error}") from error
        return Path(path)
