"""The arrays of a record as its writer sees them: their chunks, and what the root says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from notebook_probe.record.format.array_specs import ArraySpec
from notebook_probe.record.format.chunk_sizes import chosen_sizes
from notebook_probe.record.format.chunks import Array, Chunks, Extent
from notebook_probe.record.format.metadata import Nodes
from notebook_probe.record.format.rounding import rounded
from notebook_probe.record.format.tables import TableColumn

__all__ = ["ShapedArrayWriter"]


class ShapedArrayWriter:
    """Writes arrays and notes their shapes, which `nodes` has for the next root.

    Parameters
    ----------
    existing : mapping of str to Extent
        The existing arrays, as published, by path.
    attrs : mapping
        Attributes of the root, which may have the chosen chunk sizes.
    """

    def __init__(
        self, chunks: Chunks, existing: Mapping[str, Extent], attrs: Mapping[str, Any]
    ) -> None:
        self.nodes = Nodes()
        self.chunks = chunks
        self.sizes = chosen_sizes(chunks.sizes, attrs)
        """Sizes of the chunks of new arrays."""
        self._existing = existing
        self._specs: dict[str, ArraySpec] = {}

    def take_up(self, path: str, make_spec: Callable[[], ArraySpec]) -> ArraySpec:
        """Return the spec of the array at ``path``: from ``make_spec``, with existing chunks.

        The first time, rows of a killed writer beyond the published ones are removed.
        """
        if path not in self._specs:
            spec = make_spec()
            existing = self._existing.get(path, Extent((0,) * len(spec.dims), spec.chunks))
            spec = replace(spec, chunks=existing.chunks)
            self.chunks.truncate(path, spec, existing.shape)
            self._specs[path] = spec
        return self._specs[path]

    def cut(self, existing: Mapping[str, Extent]) -> None:
        """Remove everything beyond ``existing``, now published, before arrays are written again."""
        self._existing = existing
        self._specs.clear()

    def write_rows(self, path: str, start: int, values: Array) -> None:
        """Write ``values`` as rows ``start:`` of the array taken up at ``path``."""
        spec = self._specs[path]
        self.chunks.write_rows(path, spec, start, rounded(values, spec.keep_bits))

    def grow(self, path: str, shape: tuple[int, ...]) -> None:
        """Set the shape in the next root of the array at ``path``."""
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
        """Modules per chunk of the existing arrays in ``group``, or None."""
        shapes = (e.chunks for path, e in self._existing.items() if path.startswith(f"{group}/"))
        return next((chunks[1] for chunks in shapes if len(chunks) == 2), None)
