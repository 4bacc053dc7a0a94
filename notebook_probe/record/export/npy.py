"""Tensors of a record as .npy files: one per quantity and module, readable by numpy alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.record.export.safe_names import SafeNames
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import Floats
from notebook_probe.record.views.selection import Selected

__all__ = ["write_npy"]

WINDOW_VALUES = 2**21
INDEX = "index.json"


def write_npy(
    folder: Path, arrays: Iterable[tuple[str, str, xr.DataArray]], selection: Selected
) -> list[Path]:
    """Write ``<quantity>/<module>.npy`` and its steps ``<quantity>/<module>.step.npy``.

    The first axis is the step, rows without a measurement left out. ``index.json`` tells which
    file holds what, and the coordinates along the other axes.

    Parameters
    ----------
    arrays : iterable of (quantity, module, array)
        Arrays with dims (step, ...), read a few megabytes at a time.

    Returns
    -------
    list of Path
        The files of values, in the order they were written.
    """
    described: list[dict[str, Any]] = []
    coords: dict[str, Any] = {}
    names: dict[str, SafeNames] = {}
    places: dict[str, Path] = {}
    folders = SafeNames()
    for quantity, module, array in arrays:
        if quantity not in places:
            places[quantity] = folder / folders.name(quantity)
            places[quantity].mkdir()
        place = places[quantity]
        name = names.setdefault(quantity, SafeNames()).name(module)
        shape = _write_array(place / f"{name}.npy", array, selection)
        if shape[0]:
            file = f"{place.name}/{name}.npy"
            dims = [str(dim) for dim in array.dims]
            one = {"file": file, "module": module, "quantity": quantity}
            described.append({**one, "dims": dims, "shape": list(shape)})
            coords |= {
                dim: array[dim].to_numpy().tolist() for dim in dims[1:] if dim in array.coords
            }
    index = {"arrays": described, "coords": coords}
    (folder / INDEX).write_text(json.dumps(index, indent=1), "utf-8")
    return [folder / one["file"] for one in described]


def _write_array(path: Path, array: xr.DataArray, selection: Selected) -> tuple[int, ...]:
    """Write the measured rows; returns their shape. Without any there is no file."""
    file = _GrowingFile(path, array.shape[1:])
    steps: list[Any] = []
    for part in _windows(array, selection):
        values = np.asarray(part.to_numpy(), np.float32)
        is_measured = np.asarray(measured(values).any(axis=tuple(range(1, values.ndim))))
        if is_measured.any():
            file.append(values[is_measured])
            steps.append(part["step"].to_numpy()[is_measured])
    file.close()
    if steps:
        np.save(path.with_suffix(".step.npy"), np.concatenate(steps))
    return (file.n_rows, *array.shape[1:])


def _windows(array: xr.DataArray, selection: Selected) -> Iterator[xr.DataArray]:
    rows = selection.rows(array["step"].to_numpy())
    window = max(1, WINDOW_VALUES // max(1, math.prod(array.shape[1:])))
    for first in range(rows.start, rows.stop, window):
        yield array.isel(step=slice(first, min(rows.stop, first + window)))


class _GrowingFile:
    """A .npy file of rows; its header, which has room for that, learns their number at the end."""

    def __init__(self, path: Path, cell: tuple[int, ...]) -> None:
        self.n_rows = 0
        self._path = path
        self._cell = cell
        self._file: Any = None

    def append(self, rows: Floats) -> None:
        if self._file is None:
            self._file = self._path.open("xb")
            self._write_header()
        self._file.write(np.ascontiguousarray(rows, "<f4").tobytes())
        self.n_rows += len(rows)

    def close(self) -> None:
        if self._file is not None:
            self._file.seek(0)
            self._write_header()
            self._file.close()

    def _write_header(self) -> None:
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.n_rows, *self._cell)}
        np.lib.format.write_array_header_1_0(self._file, header)
