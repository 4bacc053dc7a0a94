"""A landscape as a dataset of xarray, in a store that opens without this package."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.errors import CheckpointError
from notebook_probe.json_numbers import json_value
from notebook_probe.summary.landscape.evaluation import Evaluated
from notebook_probe.summary.landscape.planes import Plane

__all__ = ["as_dataset", "opened", "saved"]

SUFFIX = ".zarr"
ABOUT_PATH = {
    "path_x": "where the path lies along the first direction",
    "path_y": "where the path lies along the second direction",
    "path_loss": "loss with the parameters that the training had, on its path or outside the plane",
}


def as_dataset(plane: Plane, found: Evaluated, **attrs: Any) -> xr.Dataset:
    """Losses over a plane, and where the training went.

    Returns
    -------
    xr.Dataset
        ``loss`` with dims (y, x); for a path ``path_x``, ``path_y`` and ``path_loss`` with dim
        ``number``. Attribute ``loss_at_origin`` is the loss at the marked point, at 0, 0.
    """
    loss = xr.DataArray(
        found.losses,
        dims=("y", "x"),
        coords={"x": [*plane.grid.xs], "y": [*plane.grid.ys]},
        attrs={"long_name": "loss"},
    )
    dataset = xr.Dataset({"loss": loss})
    if plane.path is not None:
        dataset = dataset.assign_coords(number=[*plane.path.numbers])
        values = (*plane.path.places.T, found.along_path)
        for (name, about), along in zip(ABOUT_PATH.items(), values, strict=True):
            dataset[name] = ("number", np.asarray(along), {"long_name": about})
        attrs["shares"] = [*plane.path.shares]
    return dataset.assign_attrs(
        **attrs,
        origin=plane.origin.number,
        loss_at_origin=found.at_origin,
        n_evaluated=found.n_done,
        seconds=round(found.seconds, 3),
    )


def is_whole(dataset: xr.Dataset) -> bool:
    """Return whether every point was evaluated."""
    return bool(dataset.attrs["n_evaluated"] == dataset.loss.size)


def saved(dataset: xr.Dataset, folder: Path, name: str) -> Path:
    """Write a dataset as a zarr group, atomically, replacing a former one."""
    # A unique name, as two processes may write at once.
    target, own = folder / f"{name}{SUFFIX}", f".{name}-{uuid.uuid4().hex[:8]}"
    written, former = folder / f"{own}.new", folder / f"{own}.old"
    # JSON has no NaN and no infinity, which a loss may be.
    plain = {key: json_value(value) for key, value in dataset.attrs.items()}
    try:
        dataset.assign_attrs(**plain).to_zarr(written, mode="w-", consolidated=False)
        # A folder cannot replace one that has files, so the former one is moved away first.
        if target.exists():
            os.replace(target, former)  # noqa: PTH105
        os.replace(written, target)  # noqa: PTH105
    finally:
        for left in (written, former):
            shutil.rmtree(left, ignore_errors=True)
    return target


def opened(folder: Path, name: str) -> xr.Dataset:
    """Load a landscape that `saved` has written.

    Raises
    ------
    CheckpointError
        There is nothing.
    """
    path = folder / f"{name}{SUFFIX}"
    if not path.is_dir():
        there = ", ".join(sorted(one.stem for one in folder.glob(f"*{SUFFIX}"))) or "none"
        raise CheckpointError(
            f"no landscape {name!r} in {folder}; there are: {there}; with model=, loss_fn= and "
            f"batches= it is drawn"
        )
    with xr.open_zarr(path, consolidated=False) as stored:
        dataset = stored.load()
    return dataset.assign_attrs(loss_at_origin=float(dataset.attrs["loss_at_origin"]))
