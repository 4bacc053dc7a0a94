"""The static picture below a panel: what a saved notebook still shows without a kernel."""

from __future__ import annotations

import base64
import threading
import time
import uuid
from collections.abc import Callable

from IPython.core.getipython import get_ipython
from IPython.display import display, update_display

from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.save.export import N_COLUMNS, picture
from notebook_probe.record.views.thinning.heat_grid import HeatGrid
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["SavedPicture"]

EVERY_S = 60.0
"""Seconds between pictures while training runs, for autosaves and kernels that are killed."""


class SavedPicture:
    """An output cell for the picture, created empty and filled by its id from any thread.

    It is right after the panel, whose style hides it as long as the panel exists. A reloaded page
    does not update an output that it has read from a file: the picture is also sent to the panel.

    Parameters
    ----------
    source : RunSource
    hand_over : callable
        Receives each picture, a PNG in base64.
    """

    def __init__(self, source: RunSource, hand_over: Callable[[str], None]) -> None:
        self._source, self._hand_over = source, hand_over
        self._id = uuid.uuid4().hex
        self._placed = False
        self._taken_s = time.monotonic()
        self._key: object = None
        self._content = ""
        self._is_kept = False  # it was published in a cell: a notebook runner keeps no other
        self._reduced = HeatGrid("", N_COLUMNS)
        self._lock = threading.Lock()

    @property
    def exists(self) -> bool:
        """True if there is a picture."""
        return self._key is not None

    @property
    def due(self) -> bool:
        """The last picture is older than a minute, and none was ordered since."""
        return time.monotonic() - self._taken_s > EVERY_S

    def postpone(self) -> None:
        """Note that a picture was taken: the next is due in a minute."""
        self._taken_s = time.monotonic()

    def place(self) -> None:
        """Make room for the picture here; a second place shows the same picture."""
        self._placed = get_ipython() is not None
        if self._placed:
            display({"text/plain": ""}, raw=True, display_id=self._id)
            self._key = None

    def draw_of(self, source: RunSource) -> None:
        """Show another source from the next picture on."""
        with self._lock:
            self._source, self._key = source, None
            self._reduced = HeatGrid("", N_COLUMNS)

    def take(self, selection: PanelSelection) -> None:
        """Draw and publish the selection, unless that picture exists already."""
        with self._lock:
            key = (self._source.revision, selection)
            in_cell = threading.current_thread() is threading.main_thread()
            is_there = key == self._key and (self._is_kept or not in_cell)
            if not self._placed or not selection.home or is_there:
                return
            if key != self._key:
                self._content = base64.b64encode(self._drawn(selection)).decode("ascii")
            bundle = {"image/png": self._content, "text/plain": "notebook_probe picture"}
            update_display(bundle, raw=True, display_id=self._id)
            self._hand_over(self._content)
            self._key, self._taken_s, self._is_kept = key, time.monotonic(), in_cell

    def _drawn(self, selection: PanelSelection) -> bytes:
        """Draw the picture; keeps the reductions, so that the next one reads only new rows."""
        if (self._reduced.quantity, self._reduced.window) != (selection.home, selection.window):
            self._reduced = HeatGrid(selection.home, N_COLUMNS, selection.window)
        self._reduced.read_new(self._source)
        grid = self._reduced.grid(axis_order(self._source))
        return picture("png", self._source, selection, grid)
