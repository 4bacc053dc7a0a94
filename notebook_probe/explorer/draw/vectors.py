"""Vectors of the home quantity: a small picture of elements x steps for each module."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from notebook_probe.explorer.draw.element_series import element_key
from notebook_probe.explorer.draw.halves import halves
from notebook_probe.explorer.draw.heat import n_columns
from notebook_probe.explorer.draw.view import panel_plot
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.glyphs import glyph_of
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.vector_frames import NEVER, VectorFrameRow, VectorsFrame
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.thinning import vector_pictures as pictures

__all__ = ["Vectors"]


@panel_plot("vectors")
class Vectors:
    """Frames of the vector view."""

    def __init__(self) -> None:
        self._reader = pictures.VectorReader()

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame | None:
        found = self._reader.read(
            source,
            selection.home,
            lambda n_elements: n_columns(n_elements, width),
            selection.window,
            axis_order(source),
        )
        return None if found is None else _frame(found, selection)


def _frame(found: pictures.VectorPictures, selection: PanelSelection) -> Frame:
    quantity, axis, edges = selection.home, found.axis, found.edges
    kept = found.rows[0].elements
    scale = found.colours(selection.log_heat)
    cells = np.concatenate([row.cells for row in found.rows])
    last = np.concatenate([row.last for row in found.rows]).astype("<f4")
    measured = np.stack([row.measured for row in found.rows])
    steps = np.where(measured < 0, NEVER, measured - found.first).astype("<i4")
    message: VectorsFrame = {
        "v": VERSION,
        "type": "vectors",
        "seq": 0,
        "layout": [
            [(len(cells), 2 * cells.shape[1])],
            [(1, 4 * len(last))],
            [(len(steps), 4 * steps.shape[1])],
        ],
        "quantity": quantity,
        "rows": [_row_head(row) for row in found.rows],
        "columns": found.columns,
        "first_step": found.first,
        "last_step": found.last,
        "end_step": found.end,
        "keys": [] if axis is None else [element_key(axis, index) for index in kept],
        "at": [] if axis is None else _finite([axis.coords[axis.name][k] for k in kept]),
        "low_edges": [] if edges is None else _finite(edges[0][kept]),
        "high_edges": [] if edges is None else _finite(edges[1][kept]),
        "n_lanes": 0 if edges is None else int(np.isnan(edges[0][kept]).sum()),
        "has_series": not found.has_own_widths,
        "glyph": glyph_of(quantity, axis is not None),
        "low": scale.low,
        "high": scale.high,
        "log": scale.log,
        "colours": scale.colours,
    }
    return message, [memoryview(one.tobytes()) for one in (halves(cells), last, steps)]


def _row_head(row: pictures.VectorRow) -> VectorFrameRow:
    return {"module": row.module, "n": len(row.elements), "scale": row.scale}


def _finite(values: Sequence[float] | pictures.Cells) -> list[float | None]:
    """JSON has no NaN and no infinity."""
    return [json_number(value) for value in values]
