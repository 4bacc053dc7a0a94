"""The arrays of a record as its writer sees them: their chunks, and what the root says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from notebook_probe.record.format.chunk_sizes import chosen_sizes
from notebook_probe.record.format.chunks import Array, Chunks, Extent
from notebook_probe.record.format.metadata import Nodes
from notebook_probe.record.format.rounding import rounded
from notebook_probe.record.format.schema import ArraySpec
from notebook_probe.record.format.tables import TableColumn

__all__ = ["Arrays"]


class Arrays:
    """Writes arrays and notes their shapes, which `nodes` has for the next root.

    Parameters
    ----------
    existing : mapping of str to Extent
        The arrays that are there already, as published, by path.
    attrs : mapping
        Of the root, which may tell how large chunks were chosen to be.
    """

    def __init__(
        self, chunks: Chunks, existing: Mapping[str, Extent], attrs: Mapping[str, Any]
    ) -> None:
        self.nodes = Nodes()
        self.chunks = chunks
        self.sizes = chosen_sizes(chunks.sizes, attrs)
        """Of the chunks of new arrays."""
        self._existing = existing
        self._specs: dict[str, ArraySpec] = {}

    def take_up(self, path: str, make_spec: Callable[[], ArraySpec]) -> ArraySpec:
        """What is written at ``path``: as ``make_spec`` says, in the chunks that are there already.

        The first time, what a killed writer left there beyond what it published is removed.
        """
        if path not in self._specs:
            spec = make_spec()
            existing = self._existing.get(path, Extent((0,) * len(spec.dims), spec.chunks))
            spec = replace(spec, chunks=existing.chunks)
            self.chunks.truncate(path, spec, existing.shape)
            self._specs[path] = spec
        return self._specs[path]

    def cut(self, existing: Mapping[str, Extent]) -> None:
        """Remove what lies beyond ``existing``, now published, before an array is written again."""
        self._existing = existing
        self._specs.clear()

    def write_rows(self, path: str, start: int, values: Array) -> None:
        """Write ``values`` as rows ``start:`` of the array taken up at ``path``."""
        spec = self._specs[path]
        self.chunks.write_rows(path, spec, start, rounded(values, spec.keep_bits))

    def grow(self, path: str, shape: tuple[int, ...]) -> None:
        """Let the next root say ``shape`` of the array taken up at ``path``."""
        self.nodes.array(path, self._specs[path], shape)

    def write_whole(self, path: str, spec: ArraySpec, values: Sequence[Any]) -> None:
        """Write a whole array of one axis."""
        if path in self._existing:
            spec = replace(spec, chunks=self._existing[path].chunks)
        self.chunks.write_whole(path, spec, values)
        self.nodes.array(path, spec, (len(values),))

    def write_table(self, path: str, columns: Mapping[str, TableColumn]) -> None:
        """Write a whole table."""
        self.nodes.group(path)
        for name, (spec, values) in columns.items():
            self.write_whole(f"{path}/{name}", spec, values)

    def chunk_width(self, group: str) -> int | None:
        """Modules per chunk of the arrays that are there already in ``group``, or None."""
        shapes = (e.chunks for path, e in self._existing.items() if path.startswith(f"{group}/"))
        return next((chunks[1] for chunks in shapes if len(chunks) == 2), None)
