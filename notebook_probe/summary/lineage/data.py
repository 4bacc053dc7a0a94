"""Samples of a training, their batch size and their location."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph

__all__ = ["DataFacts", "data_facts"]

PATHS = ("root", "path", "data_dir", "folder", "directory", "file", "filename")
"""Attributes by which datasets say where they are, the most usual first."""


@dataclass(frozen=True, slots=True)
class DataFacts:
    """Facts from a dataset graph; None if unknown."""

    batch_size: int | None = None
    size: int | None = None
    """Number of samples in a pass; for a part of a dataset, of that part."""
    path: str | None = None


def data_facts(graph: DatasetGraph | None) -> DataFacts:
    """Read them off a graph.

    Examples
    --------
    >>> whole = DataPart("dataset", "dataset", "MNIST", 60000, {"root": "/data"})
    >>> loader = DataPart("", "loader", "DataLoader", 938, {"batch_size": 64}, (whole,))
    >>> data_facts(DatasetGraph(loader))
    DataFacts(batch_size=64, size=60000, path='/data')
    """
    if graph is None:
        return DataFacts()
    parts = [*graph]
    sizes = (
        part.settings.get("batch_size") for part in parts if part.kind in ("loader", "sampler")
    )
    data = [part for part in parts if part.role == "dataset"]
    return DataFacts(
        next((size for size in sizes if isinstance(size, int)), None),
        data[0].length if data else None,
        next(_paths(parts), None),
    )


def _paths(parts: list[DataPart]) -> Iterator[str]:
    # The most usual attribute of any part before a rare one of the first part.
    for name in PATHS:
        for part in parts:
            value = part.settings.get(name)
            if part.kind == "dataset" and isinstance(value, str):
                yield value
