"""Divergence of other runs: the ratio as a heat map, and where they separate, as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from notebook_probe.compare import PartingSearch, Ratio, RatioGrid
from notebook_probe.explorer.draw.halves import halves
from notebook_probe.explorer.draw.heat import n_columns
from notebook_probe.explorer.draw.heat_rows import ratio_rows
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.vector_frames import NEVER
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["PartedRow", "PartingMessage", "RatioFrame", "RunDivergence"]

WIDTH = 450
"""Columns at most, of which a browser makes a picture of any width."""


class RatioFrame(TypedDict):
    """Ratio of two runs as a heat map, in decades or in spreads.

    buffers: [0] upper halves of float32 (row, column), row-major; [1] uint8 state: 0 value, 1 not
    measured, 2 contains NaN or infinity; [2] int32 step at which this run was measured, from
    ``first_step``, which may be before the column; `NEVER` without a value.
    """

    v: int
    type: str
    quantity: str
    to: str
    """Location of the other run, the first of a group."""
    rows: list[str]
    columns: int
    first_step: int
    last_step: int
    end_step: int
    """Last step that this run has in the last column."""
    limit: float
    """End of the color scale: 1 decade, or 3 spreads."""
    signed: bool
    """Differences in units of the spread, since ratios would tell nothing."""
    lowest: float | None
    highest: float | None


class PartedRow(TypedDict):
    """Step at which a module diverges, and how far: there, and at the last common row."""

    module: str
    step: int
    there: str
    now: str


class PartingMessage(TypedDict):
    """Step at which a run diverges from another, or from a group."""

    v: int
    type: str
    quantity: str
    to: str
    text: str
    """Result in one sentence."""
    bound: str
    """Definition of a large distance, as text."""
    found: list[PartedRow]
    lately: list[str]
    """Modules that are far at their last rows, which are fewer than are wanted."""
    within: list[str]
    missing: list[str]
    """Modules with values in this run alone."""


class RunDivergence:
    """Divergence of one or more runs, updated while runs grow; rows are read once.

    Parameters
    ----------
    this : Source
    others : sequence of Source
        One, or the runs of a group.
    to : str
        Location of the first of them.
    selection : PanelSelection
        Chooses the quantity, the alignment and the window.

    Raises
    ------
    UnknownNameError
        A series that the axis needs is not recorded in one of them.
    """

    def __init__(
        self, this: RunSource, others: Sequence[RunSource], to: str, selection: PanelSelection
    ) -> None:
        self._this, self._to, self._quantity = this, to, selection.home
        by = selection.aligned
        self._grid = RatioGrid(
            this,
            others,
            self._quantity,
            by=by,
            n_columns=n_columns(len(axis_order(this)), WIDTH),
            window=selection.window,
        )
        self._search = PartingSearch(this, others, self._quantity, by=by)

    @property
    def lost(self) -> list[tuple[RunSource, str]]:
        """Runs that are left out since something in them cannot be read, each with a sentence."""
        return [*self._grid.members.lost, *self._search.lost]

    def frames(self, selection: PanelSelection) -> list[Frame]:
        """Return the ratio, if there is any, and where the runs diverge."""
        self._grid.read_new()
        ratio = self._grid.grid()
        if ratio is None:
            return [(self._parting(selection, ()), [])]
        drawn = self._ratio_frame(ratio, selection)
        return [drawn, (self._parting(selection, ratio.modules), [])]

    def _ratio_frame(self, ratio: Ratio, selection: PanelSelection) -> Frame:
        ratio = ratio_rows(ratio, selection.rows, selection.folds)
        finite = ratio.apart[np.isfinite(ratio.apart)]
        message: RatioFrame = {
            "v": VERSION,
            "type": "ratio",
            "quantity": self._quantity,
            "to": self._to,
            "rows": list(ratio.modules),
            "columns": ratio.apart.shape[1],
            "first_step": ratio.first,
            "last_step": ratio.last,
            "end_step": ratio.end,
            "limit": ratio.limit,
            "signed": ratio.is_signed,
            "lowest": float(finite.min()) if finite.size else None,
            "highest": float(finite.max()) if finite.size else None,
        }
        steps = np.where(ratio.measured < 0, NEVER, ratio.measured - ratio.first)
        # Half the bytes: colors need no more than 8 bits of precision.
        buffers = halves(ratio.apart), ratio.state, steps.astype("<i4")
        return message, [memoryview(one.tobytes()) for one in buffers]

    def _parting(self, selection: PanelSelection, rows: Sequence[str]) -> PartingMessage:
        parted = self._search.found(*selection.parted_by)
        return {
            "v": VERSION,
            "type": "parting",
            "quantity": self._quantity,
            "to": self._to,
            "text": parted.text,
            "bound": parted.bound,
            "found": [
                {
                    "module": one.module,
                    "step": one.step,
                    "there": parted.words(one.there),
                    "now": parted.words(one.now),
                }
                for one in parted.found
            ],
            "lately": [one.module for one in parted.lately],
            "within": list(parted.within),
            "missing": [module for module in rows if module in parted.missing],
        }
