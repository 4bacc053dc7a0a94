"""A record with something of everything, growing and closed, and what its arrays hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr

from notebook_probe.record import RecordWriter
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from tests.record.build import BINS, COUNTS, GRAD, WEIGHT, fill, new_writer, vectors

__all__ = ["begin", "finish", "nodes_of", "plain"]


def begin(folder: Path) -> RecordWriter:
    """A writer that has published numbers, two kinds of NaN, histograms, names and an event."""
    writer = new_writer(folder)
    stream = writer.stream("every_1")
    stream.extend(["conv1", "fc", "é \N{SNOWMAN}"], [GRAD, WEIGHT])
    fill(stream, range(70))
    gaps = np.full(stream.shape, NOT_MEASURED, np.float32)
    gaps[0, 1] = MEASURED_NAN
    gaps[1, 2] = np.inf
    assert stream.record(70, 70, gaps)
    named = writer.named()
    named.extend(["train/loss", "../x"])
    assert named.record(5, 5, np.array([[0.5, MEASURED_NAN]], np.float32))
    hist = writer.stream("every_2", axis=BINS)
    hist.extend(["fc"], [COUNTS])
    for step in (0, 2):
        assert hist.record(step, step, vectors(hist, step))
    writer.event(3, "attach", "fc")
    assert writer.flush(60)
    return writer


def finish(writer: RecordWriter) -> None:
    """More rows, then the end."""
    fill(writer.stream("every_1"), range(71, 80))
    writer.close()


def nodes_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The arrays of the commit record."""
    root = json.loads((folder / "zarr.json").read_text())
    nodes: dict[str, dict[str, Any]] = root["consolidated_metadata"]["metadata"]
    return {path: node for path, node in nodes.items() if node["node_type"] == "array"}


def plain(folder: Path, path: str) -> npt.NDArray[Any]:
    """An array as zarr-python reads it."""
    group = zarr.open_group(folder, mode="r", use_consolidated=True)
    array = group[path]
    assert isinstance(array, zarr.Array)
    return np.asarray(array[...])
