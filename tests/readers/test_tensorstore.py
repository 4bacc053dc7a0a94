"""A record read in C++, by TensorStore: bit for bit the same, while it grows and when closed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorstore

from tests.readers.sample_record import begin, finish, nodes_of, plain


def check(folder: Path) -> int:
    numeric = {
        path: node for path, node in nodes_of(folder).items() if node["data_type"] != "string"
    }
    for path, node in numeric.items():
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{folder / path}/"},
            "metadata": node,
        }
        array = tensorstore.open(spec, open=True, assume_metadata=True).result()
        got = np.asarray(array[...].read().result())
        assert got.tobytes() == plain(folder, path).tobytes(), path
    return len(numeric)


def test_tensorstore_reads_an_open_and_a_closed_record(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    writer = begin(folder)
    assert check(folder) > 10
    finish(writer)
    assert check(folder) > 10
    assert plain(folder, "scalars/every_1/step").tolist() == list(range(80))
