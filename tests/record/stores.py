"""Stores of every kind to ship a record to, each told by what opens it again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.abc.store import Store
from zarr.storage import MemoryStore

from notebook_probe.record import RecordWriter
from notebook_probe.record.store.location import Location, RemoteStore
from notebook_probe.record.store.opener import opener
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import Engine
from tests.record.build import GRAD, MODULES, NEVER_S, WEIGHT
from tests.record.store.s3_server import BUCKET

__all__ = ["KINDS", "check_rows", "engine_at", "location_of", "new_store", "recording"]

_HERE: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: f"memory://{folder.name}",
    "directory": lambda folder: (folder / "remote.zarr").as_uri(),
    "zarr": lambda folder: MemoryStore(),
    "icechunk": lambda folder: "icechunk" + (folder / "repository").as_uri().removeprefix("file"),
}
_ON_S3: dict[str, tuple[str, str, dict[str, Any]]] = {
    "s3": ("s3", "endpoint", {}),
    "icechunk+s3": (
        "icechunk+s3",
        "endpoint_url",
        {"allow_http": True, "force_path_style": True},
    ),
}
KINDS = [*_HERE, *(pytest.param(kind, marks=pytest.mark.s3) for kind in _ON_S3)]


def new_store(kind: str, folder: Path, request: pytest.FixtureRequest | None = None) -> Any:
    """An empty store, to be given to `location_of`, `engine_at` and readers."""
    if kind in _HERE:
        return _HERE[kind](folder)
    assert request is not None
    scheme, endpoint, options = _ON_S3[kind]
    keys = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}
    where = {endpoint: request.getfixturevalue("s3")}
    return RemoteStore(f"{scheme}://{BUCKET}/{uuid.uuid4()}", options={**keys, **where, **options})


def location_of(store: Any, spool: Path, every_s: float = NEVER_S) -> RemoteStore:
    """``store`` as the machine sees it whose disk ``spool`` is on."""
    spool.mkdir(exist_ok=True)
    given = store if isinstance(store, RemoteStore) else RemoteStore(store)
    return replace(given, spool=spool, every_s=every_s)


def engine_at(store: Any) -> Engine:
    return engine_of(store if isinstance(store, RemoteStore) else RemoteStore(store))


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
