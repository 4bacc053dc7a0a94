"""Vectors of the home quantity: a small picture of elements x steps for each module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from notebook_probe.axis import Axis
from notebook_probe.explorer.draw.colour_scale import ColourScale, colour_scale
from notebook_probe.explorer.draw.common_bins import CommonBins, Widest
from notebook_probe.explorer.draw.element_series import axis_of, element_key
from notebook_probe.explorer.draw.heat import Window, n_columns
from notebook_probe.explorer.draw.view import panel_plot
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.glyphs import glyph_of
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.vector_frames import VectorRow, VectorsFrame
from notebook_probe.explorer.messages.wire import VERSION, Frame
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.ranges import is_share
from notebook_probe.record.format.source import Source, StreamView
from notebook_probe.record.views.thinning.heat_grid import LOST, UNMEASURED, Grid, HeatGrid

__all__ = ["Vectors"]

KEPT = 3

Cells = npt.NDArray[np.float32]


@panel_plot("vectors")
class Vectors:
    """Keeps the reductions of the vectors looked at last and reads only what they gain."""

    def __init__(self) -> None:
        self._grids: OrderedDict[tuple[str, int, Window], HeatGrid] = OrderedDict()
        self._widest: dict[tuple[str, str], Widest] = {}

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame | None:
        quantity = selection.home
        axis = axis_of(source, quantity)
        streams = self._streams(source, quantity, axis)
        if not streams:
            return None
        n_elements = len({label for stream in streams.values() for label in stream.modules})
        grid = self._reduced(quantity, n_columns(n_elements, width), selection.window, streams)
        if grid is None:
            return None
        counted = axis.without_width if axis is not None and axis.has_width else axis
        bins = None if counted is None else _edges(counted)
        last = _last_values(streams, quantity, selection.window)
        rows = _rows(grid, axis_order(source), last)
        if bins is not None:
            rows = _without_empty(rows, np.isnan(bins[0]))
        return self._message(streams, selection, grid, rows, counted, bins)

    def _message(
        self,
        streams: Mapping[str, StreamView],
        selection: PanelSelection,
        grid: Grid,
        rows: Sequence[_Row],
        axis: Axis | None,
        bins: tuple[Cells, Cells] | None,
    ) -> Frame:
        quantity = selection.home
        kept = rows[0].elements
        scale = _colours(rows, streams, selection, bins is not None)
        widths = self._widths(quantity)
        cells = np.concatenate([row.cells for row in rows])
        last = np.concatenate([row.last for row in rows]).astype("<f4")
        message: VectorsFrame = {
            "v": VERSION,
            "type": "vectors",
            "seq": 0,
            "layout": [[(len(cells), 2 * cells.shape[1])], [(1, 4 * len(last))]],
            "quantity": quantity,
            "rows": [_told(row, widths.get(row.module, 1.0)) for row in rows],
            "columns": grid.mean.shape[1],
            "first_step": grid.first,
            "last_step": grid.last,
            "keys": [] if axis is None else [element_key(axis, index) for index in kept],
            "at": [] if axis is None else _finite([axis.coords[axis.name][k] for k in kept]),
            "low_edges": [] if bins is None else _finite(bins[0][kept]),
            "high_edges": [] if bins is None else _finite(bins[1][kept]),
            "n_lanes": 0 if bins is None else int(np.isnan(bins[0][kept]).sum()),
            "has_series": not widths,
            "glyph": glyph_of(quantity, axis is not None),
            "low": scale.low,
            "high": scale.high,
            "log": scale.log,
            "colours": scale.colours,
        }
        return message, [memoryview(_halves(cells).tobytes()), memoryview(last.tobytes())]

    def _streams(
        self, source: Source, quantity: str, axis: Axis | None
    ) -> Mapping[str, StreamView]:
        """What holds it; of histograms whose bins widen, in bins that all have in common."""
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
        """Of each module, in whichever streams it is."""
        widths: dict[str, float] = {}
        for (name, _), widest in self._widest.items():
            if name == quantity:
                for module, width in widest.widths.items():
                    widths[module] = max(width, widths.get(module, 0.0))
        return widths

    def _reduced(
        self, quantity: str, columns: int, window: Window, streams: Mapping[str, StreamView]
    ) -> Grid | None:
        key = (quantity, columns, window)
        if key not in self._grids:
            self._grids[key] = HeatGrid(quantity, columns, window)
        self._grids.move_to_end(key)
        while len(self._grids) > KEPT:
            self._grids.popitem(last=False)
        self._grids[key].read(streams)
        return self._grids[key].grid(())


@dataclass(frozen=True, slots=True)
class _Row:
    """One module's cells, (element, column)."""

    module: str
    elements: list[int]
    cells: Cells
    last: Cells


def _last_values(
    streams: Mapping[str, StreamView], quantity: str, window: Window
) -> dict[str, float]:
    """Of each element the value in the last row in the window, of the newest stream that has it."""
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


def _rows(grid: Grid, order: Sequence[str], last: Mapping[str, float]) -> list[_Row]:
    """In definition order; a module whose vectors came in two lengths has a row of each."""
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
        rows.append(_Row(module, list(elements), own, np.array(ends, np.float32)))
    return rows


def _without_empty(rows: Sequence[_Row], is_lane: npt.NDArray[np.bool_]) -> list[_Row]:
    """Without the bins at either end, and the lanes, that no module ever fills."""
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
    kept = []
    for row in rows:
        mask = wanted[row.elements]
        elements = [one for one, keep in zip(row.elements, mask, strict=True) if keep]
        kept.append(_Row(row.module, elements, row.cells[mask], row.last[mask]))
    return kept


def _colours(
    rows: Sequence[_Row],
    streams: Mapping[str, StreamView],
    selection: PanelSelection,
    is_histogram: bool,
) -> ColourScale:
    """Of counts, as shares of their step."""
    shown = [row.cells for row in rows]
    if is_histogram:
        with np.errstate(invalid="ignore", divide="ignore"):
            shown = [cells / np.where(np.isfinite(cells), cells, 0).sum(axis=0) for cells in shown]
    values = np.concatenate([cells.ravel() for cells in shown])
    values = values[np.isfinite(values)]
    variables = (one for stream in streams.values() for one in stream.variables)
    share = any(is_share(one) for one in variables if one.name == selection.home)
    return colour_scale(values, values, share=is_histogram or share, log=selection.log_heat)


def _edges(axis: Axis) -> tuple[Cells, Cells] | None:
    """Lower and upper ends of bins; None for an axis without."""
    names = f"{axis.name}_lo", f"{axis.name}_hi"
    if not all(name in axis.coords for name in names):
        return None
    low, high = (np.array(axis.coords[name], np.float32) for name in names)
    return low, high


def _told(row: _Row, scale: float) -> VectorRow:
    return {"module": row.module, "n": len(row.elements), "scale": scale}


def _finite(values: Sequence[float] | Cells) -> list[float | None]:
    """JSON has neither NaN nor infinity."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _halves(values: Cells) -> npt.NDArray[np.uint16]:
    """The upper halves of float32: eight bits of precision, a third digit, in half the bytes."""
    bits = values.astype("<f4").view("<u4")
    rounded = np.where(np.isfinite(values), bits + np.uint32(0x8000), bits)
    return (rounded >> 16).astype("<u2")
