"""Reading a record while the program ends: the same values, on the thread that asks."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.errors import RecordFormatError
from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.read import stored_array

N_ROWS = 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A record of two modules, in several chunks."""
    values = np.random.default_rng(0).normal(size=(N_ROWS, 3, 1)).astype(np.float32)
    with RecordWriter(tmp_path / "r.zarr", title="r", modules=[], chunks={"step": 64}) as writer:
        stream = writer.stream("every_1", "every(1)")
        stream.extend(["a", "b", "c"], [Variable("norm")])
        for step, row in enumerate(values):
            stream.record(step, 0, row.T)
    return tmp_path / "r.zarr"


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other thread can be begun, and no pool takes anything."""

    def refuse(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(stored_array, "program_ends", lambda: True)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("zarr.core.sync.sync", refuse)
    monkeypatch.setattr("zarr.core.array.sync", refuse)


def test_all_of_a_series_and_a_part_of_it(folder: Path, request: pytest.FixtureRequest) -> None:
    with_threads = open_record(folder).streams["every_1"]
    wanted = [
        with_threads.values("norm"),
        with_threads.values("norm", 60, 130, ["c"]),
        with_threads.values("norm", 60, 130, ["c", "a"]),
        with_threads.steps(10, 290),
    ]
    stream = open_record(folder).streams["every_1"]
    request.getfixturevalue("ending")
    found = [
        stream.values("norm"),
        stream.values("norm", 60, 130, ["c"]),
        stream.values("norm", 60, 130, ["c", "a"]),
        stream.steps(10, 290),
    ]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_outer_product_of_slices_and_places(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    array = open_record(folder).streams["every_1"]._arrays["norm"]  # type: ignore[attr-defined]
    keys = [(slice(5, 200), np.array([2, 0])), (np.array([250, 3, 3]), slice(None))]
    wanted = [array.outer(*key) for key in keys]
    request.getfixturevalue("ending")
    for key, one in zip(keys, wanted, strict=True):
        np.testing.assert_array_equal(array.outer(*key), one)


def test_what_is_damaged_is_one_clear_error(folder: Path, request: pytest.FixtureRequest) -> None:
    stream = open_record(folder).streams["every_1"]
    for chunk in (folder / "scalars" / "every_1" / "norm" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"nothing that was ever compressed")
    request.getfixturevalue("ending")
    with pytest.raises(RecordFormatError, match=r"cannot read .*norm"):
        stream.values("norm")
