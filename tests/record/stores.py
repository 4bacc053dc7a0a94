"""Stores of every kind to ship a record to, each told by a location that opens it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from zarr.abc.store import Store
from zarr.storage import MemoryStore

from notebook_probe.record import RecordWriter
from notebook_probe.record.location import Location, RemoteStore, opener
from tests.record.build import GRAD, MODULES, NEVER_S, WEIGHT

__all__ = ["KINDS", "check_rows", "location_of", "recording"]

KINDS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: f"memory://{folder.name}",
    "directory": lambda folder: (folder / "remote.zarr").as_uri(),
    "zarr": lambda folder: MemoryStore(),
    "icechunk": lambda folder: "icechunk" + (folder / "repository").as_uri().removeprefix("file"),
}


def location_of(store: Any, spool: Path, every_s: float = NEVER_S) -> RemoteStore:
    """``store`` as the machine sees it whose disk ``spool`` is on."""
    spool.mkdir(exist_ok=True)
    return RemoteStore(store, spool=spool, every_s=every_s)


def recording(location: Location, **options: Any) -> RecordWriter:
    """A writer with one stream of two quantities at two modules."""
    options.setdefault("flush_s", NEVER_S)
    writer = RecordWriter(location, title="run", modules=MODULES, **options)
    writer.stream("every_1").extend(["conv1", "fc"], [GRAD, WEIGHT])
    return writer


def check_rows(location: Location | Store) -> int:
    """Rows that plain xarray finds at this moment, every value checked."""
    store = opener(location)()
    if "scalars/every_1" not in zarr.open_group(store, mode="r"):
        return 0
    data = xr.open_zarr(store, group="scalars/every_1", chunks=None).load()
    n_rows = data.sizes["step"]
    assert np.array_equal(data.step.values, np.arange(n_rows))
    for place, name in enumerate(("grad_norm", "weight_norm")):
        expected = 1000 * place + np.array([0, 100]) + np.arange(n_rows)[:, None]
        assert np.array_equal(data[name].values, expected.astype(np.float32))
    return n_rows
