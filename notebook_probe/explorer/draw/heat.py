"""The heat map: module x step of the home quantity, in columns of equal numbers of steps."""

from __future__ import annotations

from notebook_probe.explorer.draw.heat_rows import folded, within
from notebook_probe.explorer.draw.measured_steps import before_steps, cell_states, measured_offsets
from notebook_probe.explorer.draw.view import panel_plot
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.frames import Frame, HeatFrame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.value_scale import shares
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.thinning.colour_scale import colour_scale
from notebook_probe.record.views.thinning.heat_grid import HeatGrids

__all__ = ["Heat"]

# A frame of so many cells is about one megabyte, which is sent a few times a second.
MOST_CELLS = 100_000
# Fewer columns show no course over time, however many modules there are.
LEAST_COLUMNS = 60
KEPT = 4


@panel_plot("heat")
class Heat:
    """Heat maps; keeps the reductions of the last quantities and reads only new rows."""

    def __init__(self) -> None:
        self._grids = HeatGrids(KEPT)

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame | None:
        if not selection.home:
            return None
        order = axis_order(source)
        reduced = self._grids.of(selection.home, n_columns(len(order), width), selection.window)
        reduced.read_new(source)
        whole = reduced.grid(order)
        if whole is None:
            return None
        grid = folded(within(whole, selection.rows), selection.folds)
        scale = colour_scale(
            grid.mean,
            grid.values(selection.cells),
            share=selection.home in shares(source),
            log=selection.log_heat,
        )
        n_rows, n_cells = grid.mean.shape
        offsets = measured_offsets(grid)
        sizes = 4, 1, 4, offsets.nbytes // grid.state.size
        message: HeatFrame = {
            "v": VERSION,
            "type": "heat",
            "seq": 0,
            "layout": [[(n_rows, size * n_cells)] for size in sizes],
            "quantity": selection.home,
            "rows": list(grid.modules),
            "columns": n_cells,
            "first_step": grid.first,
            "last_step": grid.last,
            "end_step": grid.end,
            "before": before_steps(grid),
            "low": scale.low,
            "high": scale.high,
            "lowest": scale.lowest,
            "highest": scale.highest,
            "log": scale.log,
            "colours": scale.colours,
        }
        arrays = (grid.mean.astype("<f4"), cell_states(grid), grid.maximum.astype("<f4"), offsets)
        return message, [memoryview(array.tobytes()) for array in arrays]


def n_columns(n_modules: int, width: int) -> int:
    """Columns of a heat map ``width`` pixels wide, fewer where the frame would swell.

    Steps of 50, so that a panel whose width or rows change a little keeps its reductions.

    Examples
    --------
    >>> [n_columns(n, 740) for n in (10, 200, 10_000)]
    [700, 500, 60]
    """
    wanted = min(width, MOST_CELLS // max(1, n_modules))
    return max(LEAST_COLUMNS, wanted // 50 * 50)
