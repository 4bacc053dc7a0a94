"""Vectors over steps: for each module a small picture of elements x columns of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from notebook_probe.axis import Axis
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.ranges import is_share
from notebook_probe.record.format.source import Source, Steps, StreamView
from notebook_probe.record.views.thinning.colour_scale import ColourScale, colour_scale
from notebook_probe.record.views.thinning.common_bins import CommonBins, Widest
from notebook_probe.record.views.thinning.heat_grid import LOST, UNMEASURED, Grid, HeatGrids, Window
from notebook_probe.record.views.thinning.run_extent import RunExtent, last_step_of

__all__ = ["Cells", "VectorPictures", "VectorReader", "VectorRow", "axis_of"]

KEPT = 3

Cells = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorRow:
    """Cells of one module."""

    module: str
    elements: list[int]
    cells: Cells
    """(element, column); NaN where no value stands, infinity where it was not finite."""
    last: Cells
    """Last value of each element."""
    measured: Steps
    """(column,) Step at which the vector of each column was measured; -1 without one."""
    scale: float = 1.0
    """Width of the bins, for histograms whose width changes."""


@dataclass(frozen=True, slots=True)
class VectorPictures:
    """The pictures of all modules, with the same columns."""

    rows: list[VectorRow]
    columns: int
    first: int
    last: int
    """First step of the first column, last one of the last."""
    end: int
    """Last step that the run has in the last column."""
    axis: Axis | None
    """Axis of the elements; None if every module has its own number of them."""
    edges: tuple[Cells, Cells] | None
    """Lower and upper ends of a histogram's bins, in widths; NaN for lanes of non-finite values."""
    has_own_widths: bool
    is_share: bool

    def shown(self, row: VectorRow) -> Cells:
        """Return the displayed cells: for histograms shares of a step's elements."""
        if self.edges is None:
            return row.cells
        with np.errstate(invalid="ignore", divide="ignore"):
            return row.cells / np.where(np.isfinite(row.cells), row.cells, 0).sum(axis=0)

    def colours(self, log: bool | None) -> ColourScale:
        """Return the color scale of all rows together."""
        values = np.concatenate([self.shown(row).ravel() for row in self.rows])
        values = values[np.isfinite(values)]
        share = self.edges is not None or self.is_share
        return colour_scale(values, values, share=share, log=log)


class VectorReader:
    """Reader of vectors; keeps the last reductions and reads only new rows."""

    def __init__(self) -> None:
        self._grids = HeatGrids(KEPT)
        self._widest: dict[tuple[str, str], Widest] = {}

    def read(
        self,
        source: Source,
        quantity: str,
        columns: Callable[[int], int],
        window: Window = None,
        order: Sequence[str] = (),
    ) -> VectorPictures | None:
        """Return the pictures; None if nothing is recorded.

        Parameters
        ----------
        columns : callable
            Returns the number of columns for a number of elements of all modules.
        order : sequence of str
            Order of the modules, from top to bottom.
        """
        axis = axis_of(source, quantity)
        streams = self._streams(source, quantity, axis)
        if not streams:
            return None
        n_elements = len({label for stream in streams.values() for label in stream.modules})
        extent = RunExtent.read(
            last_step_of([*source.streams.values(), *streams.values()]), source.events
        )
        reduced = self._grids.of(quantity, columns(n_elements), window)
        reduced.read(streams, extent)
        grid = reduced.grid(())
        if grid is None:
            return None
        counted = axis.without_width if axis is not None and axis.has_width else axis
        edges = None if counted is None else _edges(counted)
        widths = self._widths(quantity)
        rows = _rows(grid, order, _last_values(streams, quantity, window), widths)
        if edges is not None:
            rows = _without_empty(rows, np.isnan(edges[0]))
        elif counted is not None:
            rows = _without_unused(rows, counted.size)
        variables = (one for stream in streams.values() for one in stream.variables)
        share = any(is_share(one) for one in variables if one.name == quantity)
        n_columns = grid.mean.shape[1]
        return VectorPictures(
            rows=rows,
            columns=n_columns,
            first=grid.first,
            last=grid.last,
            end=grid.end,
            axis=counted,
            edges=edges,
            has_own_widths=bool(widths),
            is_share=share,
        )

    def _streams(
        self, source: Source, quantity: str, axis: Axis | None
    ) -> Mapping[str, StreamView]:
        """Return the streams with the quantity; widening histograms in common bins."""
        held = {
            path: stream
            for path, stream in source.elements.items()
            if any(one.name == quantity for one in stream.variables)
        }
        if axis is None or not axis.has_width:
            return held
        found: dict[str, StreamView] = {}
        for path, stream in held.items():
            key = quantity, path
            widest = self._widest.setdefault(key, Widest(quantity, axis))
            widest.read_new(stream)
        widths = self._widths(quantity)
        for path, stream in held.items():
            found[path] = CommonBins(stream, axis, widths)
        return found

    def _widths(self, quantity: str) -> dict[str, float]:
        """Return the width of each module, over all streams."""
        widths: dict[str, float] = {}
        for (name, _), widest in self._widest.items():
            if name == quantity:
                for module, width in widest.widths.items():
                    widths[module] = max(width, widths.get(module, 0.0))
        return widths


def axis_of(source: Source, quantity: str) -> Axis | None:
    """Return the axis of a vector; None if modules have different lengths."""
    for stream in source.vectors.values():
        if any(one.name == quantity for one in stream.variables):
            return stream.axis
    return None


def _last_values(
    streams: Mapping[str, StreamView], quantity: str, window: Window
) -> dict[str, float]:
    """Return the last value of each element in the window, from the newest stream."""
    found: list[tuple[int, dict[str, float]]] = []
    for stream in streams.values():
        stop = stream.n_rows
        if window is not None:
            stop = int(np.searchsorted(stream.steps(0, stop), window[1], "right"))
        if stop:
            [values] = stream.values(quantity, stop - 1, stop, stream.modules)
            known = measured(values)
            labels = (
                label for label, is_known in zip(stream.modules, known, strict=True) if is_known
            )
            row = dict(zip(labels, values[known].tolist(), strict=True))
            found.append((int(stream.steps(stop - 1, stop)[0]), row))
    return {
        label: value
        for _, row in sorted(found, key=lambda one: one[0])
        for label, value in row.items()
    }


def _rows(
    grid: Grid,
    order: Sequence[str],
    last: Mapping[str, float],
    widths: Mapping[str, float],
) -> list[VectorRow]:
    """Return rows in definition order; a module with vectors of two lengths has two rows."""
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for place, label in enumerate(grid.modules):
        module, index, size = read_element(label)
        places.setdefault((module, size), []).append((index, place))
    cells = grid.mean.copy()
    cells[grid.state == UNMEASURED] = np.nan
    cells[grid.state == LOST] = np.inf
    known = {name: place for place, name in enumerate(order)}
    rows = []
    for (module, _), found in sorted(
        places.items(), key=lambda item: known.get(item[0][0], len(known))
    ):
        elements, taken = zip(*sorted(found), strict=True)
        own = cells[list(taken)]
        ends = [last.get(grid.modules[place], np.nan) for place in taken]
        scale = widths.get(module, 1.0)
        last_values = np.array(ends, np.float32)
        # Elements of one vector are measured together.
        measured_at = grid.measured[list(taken)].max(axis=0)
        rows.append(VectorRow(module, list(elements), own, last_values, measured_at, scale))
    return rows


def _without_empty(rows: Sequence[VectorRow], is_lane: npt.NDArray[np.bool_]) -> list[VectorRow]:
    """Drop the lanes, and the bins at either end, that no module ever fills."""
    size = len(is_lane)
    filled = np.zeros(size, bool)
    for row in rows:
        filled[row.elements] |= (np.nan_to_num(row.cells, posinf=1.0) > 0).any(axis=1)
    inside = np.flatnonzero(filled & ~is_lane)
    wanted = np.zeros(size, bool)
    if inside.size:
        wanted[inside[0] : inside[-1] + 1] = True
    wanted = (wanted & ~is_lane) | (filled & is_lane)
    if not wanted.any():
        wanted = ~is_lane
    return [_only(row, wanted) for row in rows]


def _without_unused(rows: Sequence[VectorRow], size: int) -> list[VectorRow]:
    """Drop the elements at the end of a common axis that have no finite value in any module.

    An axis has as many elements as the longest vector can have.
    """
    used = [0]
    for row in rows:
        known = np.isfinite(row.cells).any(axis=1) | np.isfinite(row.last)
        used += [row.elements[place] for place in np.flatnonzero(known)]
    wanted = np.arange(size) <= max(used)
    return [_only(row, wanted) for row in rows]


def _only(row: VectorRow, wanted: npt.NDArray[np.bool_]) -> VectorRow:
    """Return the row with its wanted elements."""
    mask = wanted[row.elements]
    elements = [one for one, keep in zip(row.elements, mask, strict=True) if keep]
    return replace(row, elements=elements, cells=row.cells[mask], last=row.last[mask])


def _edges(axis: Axis) -> tuple[Cells, Cells] | None:
    """Lower and upper ends of bins; None for an axis without."""
    names = f"{axis.name}_lo", f"{axis.name}_hi"
    if not all(name in axis.coords for name in names):
        return None
    low, high = (np.array(axis.coords[name], np.float32) for name in names)
    return low, high
