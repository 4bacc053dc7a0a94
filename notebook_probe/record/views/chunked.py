"""Datasets in chunks of dask, cut where the chunks on disk are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import xarray as xr

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.source import ChunkGrid, Steps
from notebook_probe.record.store.destination import import_extra
from notebook_probe.record.views.parts import JoinedStream, columns_of, steps_of, variables_of

__all__ = ["PREFERRED", "ChunksLike", "check_chunks", "chunked", "stored_chunks"]

ChunksLike: TypeAlias = Mapping[str, Any]
"""Size along a dimension, sizes, or "auto"; where one is not named it is cut as on disk."""

PREFERRED = "preferred_chunks"
"""Key in the encoding under which xarray looks for the chunks of the source."""

_Sizes: TypeAlias = dict[str, tuple[int, ...]]


def check_chunks(chunks: object) -> None:
    """Raise ValueError for invalid ``chunks``, and MissingExtraError if dask is missing."""
    if chunks is None:
        return
    if not isinstance(chunks, Mapping):
        raise ValueError(
            f"chunks={chunks!r}; a dict is expected, of sizes along dimensions such as "
            "{'step': 10_000}, {} for the chunks on disk"
        )
    import_extra("dask.array", "analysis", "chunks")


def chunked(data: xr.Dataset, chunks: ChunksLike) -> xr.Dataset:
    """Return ``data`` as dask arrays, in the requested or else the preferred chunks.

    Raises
    ------
    UnknownNameError
        For a dimension that it has not.
    """
    for dim in chunks:
        if dim not in data.dims:
            raise UnknownNameError(f"no dimension {dim!r}; {near(dim, map(str, data.dims))}")
    token = uuid4().hex  # dask would read all to make one
    asked = {dim: size for dim, size in chunks.items() if size is not None}
    lazy = {}
    for name, variable in data.variables.items():
        if name in data.data_vars or name == "time":
            wanted = {**variable.encoding.get(PREFERRED, {}), **asked}
            own = {dim: wanted.get(str(dim), size) for dim, size in variable.sizes.items()}
            lazy[name] = variable.chunk(own, name=f"{name}-{token}")
    return data.assign(lazy)


def stored_chunks(parts: Sequence[JoinedStream], modules: Sequence[str]) -> dict[str, _Sizes]:
    """Return the sizes of each quantity's pieces of a join that are in separate chunks."""
    labels, steps = columns_of(parts, modules), steps_of(parts)
    sizes: dict[str, _Sizes] = {}
    for name in variables_of(parts):
        matching = [part for part in parts if name in part.variables]
        grids = [(part, part.stream.chunk_grid(name)) for part in matching]
        columns = matching[0].columns
        sizes[name] = {
            "step": _cut(len(steps), _first_rows(grids, steps)),
            columns: _cut(len(labels[columns]), _first_columns(grids, labels[columns])),
        }
    return sizes


def _cut(length: int, firsts: set[int]) -> tuple[int, ...]:
    ends = [*sorted(firsts - {0}), length]
    return tuple(np.diff(ends, prepend=0).tolist())


def _first_rows(grids: Sequence[tuple[JoinedStream, ChunkGrid]], steps: Steps) -> set[int]:
    """Places on the joined axis at which a chunk of any part begins.

    The first rows of a part are no cut: there is nothing before them, and a quantity that was
    attached later would be cut otherwise than all others, so that ``Dataset.chunks`` raised.
    """
    found: set[int] = set()
    for part, grid in grids:
        firsts = [row for row in grid.rows if 0 < row < len(part.steps)]
        found.update(np.searchsorted(steps, part.steps[firsts]).tolist())
    return found


def _first_columns(
    grids: Sequence[tuple[JoinedStream, ChunkGrid]], labels: Sequence[str]
) -> set[int]:
    """Return the first columns of chunks; empty if they were recorded in another order."""
    found: set[int] = set()
    for part, grid in grids:
        place = {label: column for column, label in enumerate(part.modules)}
        here = np.array([n for n, label in enumerate(labels) if label in place], np.intp)
        chunks = np.array([place[labels[n]] // grid.width for n in here], np.intp)
        turns = np.diff(chunks)
        if (turns < 0).any():
            return set()
        found.update(here[1:][turns > 0].tolist())
    return found
