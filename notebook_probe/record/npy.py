"""Tensors of a record as .npy files: one per quantity and module, readable by numpy alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.record.missing import measured
from notebook_probe.record.safe_names import SafeNames
from notebook_probe.record.schema import VECTOR_WIDTH
from notebook_probe.record.selection import Selection
from notebook_probe.record.source import Floats

__all__ = ["write_npy"]

WINDOW_VALUES = 2**21
INDEX = "index.json"


def write_npy(folder: Path, data: xr.Dataset, selection: Selection) -> list[Path]:
    """Write ``<quantity>/<module>.npy`` and its steps ``<quantity>/<module>.step.npy``.

    The first axis is the step, rows without a measurement left out. ``index.json`` tells which
    file holds what, and the coordinates along the other axes.

    Returns
    -------
    list of Path
        The files of values, in the order they were written.
    """
    described: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    modules = [module for module in data["module"].to_numpy() if module in selection.modules]
    for name in (str(name) for name in data.data_vars if name in selection.quantities):
        place = folder / name
        place.mkdir()
        files = SafeNames()
        array = data[name]
        dims = ["step", *map(str, array.dims[2:])]
        axes |= {dim: array[dim].to_numpy().tolist() for dim in dims[1:]}
        for first in range(0, len(modules), VECTOR_WIDTH):
            group = modules[first : first + VECTOR_WIDTH]
            paths = [place / f"{files.name(module)}.npy" for module in group]
            shapes = _write_modules(paths, array.sel(module=group), selection)
            described += [
                {
                    "file": path.relative_to(folder).as_posix(),
                    "module": module,
                    "quantity": name,
                    "dims": dims,
                    "shape": list(shape),
                }
                for path, module, shape in zip(paths, group, shapes, strict=True)
                if path.exists()
            ]
    index = {"arrays": described, "coords": axes}
    (folder / INDEX).write_text(json.dumps(index, indent=1), "utf-8")
    return [folder / one["file"] for one in described]


def _write_modules(
    paths: list[Path], array: xr.DataArray, selection: Selection
) -> list[tuple[int, ...]]:
    """Write each module's measured rows; returns the shapes. A module without any gets no file."""
    cell = array.shape[2:]
    files = [_GrowingFile(path, cell) for path in paths]
    steps: list[list[Any]] = [[] for _ in paths]
    for part in _windows(array, selection):
        values = np.asarray(part.to_numpy(), np.float32)
        elements = tuple(range(2, values.ndim))
        there = np.asarray(measured(values).any(axis=elements))
        for place in np.flatnonzero(there.any(axis=1)):
            files[place].append(values[place, there[place]])
            steps[place].append(part["step"].to_numpy()[there[place]])
    for path, file, own in zip(paths, files, steps, strict=True):
        file.close()
        if own:
            np.save(path.with_suffix(".step.npy"), np.concatenate(own))
    return [(file.n_rows, *cell) for file in files]


def _windows(array: xr.DataArray, selection: Selection) -> Iterator[xr.DataArray]:
    rows = selection.rows(array["step"].to_numpy())
    row_values = int(np.prod([array.shape[0], *array.shape[2:]]))
    window = max(1, WINDOW_VALUES // max(1, row_values))
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
