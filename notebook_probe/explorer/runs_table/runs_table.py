"""The table as a widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets
from ipywidgets.widgets.trait_types import TypedTuple

from notebook_probe.explorer.assets import joined
from notebook_probe.explorer.kernel import kernel_route, widget_lock
from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.arriving import AskAgain
from notebook_probe.explorer.runs_table.filtering import Condition
from notebook_probe.explorer.runs_table.following import ReadRow
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.lineage.table import LineageTable

__all__ = ["RunsTable", "css", "esm"]

SHEETS = ("css/base.css", "css/dialog.css", "runs_table/view.css")


@cache
def esm() -> str:
    """Return the front end, with the modules shared with the panel."""
    return joined(files("notebook_probe.explorer"), "runs_table/js/table")


@cache
def css() -> str:
    """Return the style sheet, with the colors and dialogs of the panel."""
    explorer = files("notebook_probe.explorer")
    sheets = [explorer.joinpath(one).read_text(encoding="utf-8") for one in SHEETS]
    return "\n".join(sheets).replace(".nbp-panel", ".nbp-runs-table")


class RunsTable(anywidget.AnyWidget):
    """Rows of runs, sorted and looked through in the browser.

    Parameters
    ----------
    table : LineageTable
        Table to show.
    condition : callable
        Reads the text of a condition for the filter.
    read_row : callable
        The row of an opened record, for runs that grow.
    again : callable, optional
        Function that returns the present rows, with runs that have started since.

    Attributes
    ----------
    table : dict
        Result of `notebook_probe.lineage.view.view_of`.
    chosen : str
        Location of the run that is open below; empty for none.
    others : tuple of str
        Locations of the overlaid runs.
    said : str
        Result of a click, in words.
    """

    table = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)
    others = TypedTuple(traitlets.Unicode()).tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        table: LineageTable,
        condition: Condition,
        read_row: ReadRow,
        again: AskAgain | None = None,
    ) -> None:
        rows = OpenRows(table)
        with widget_lock:
            super().__init__(table=rows.view, _esm=esm(), _css=css())
            self._answers = Answers(rows, condition, read_row, self._tell, again)
            self.on_msg(RunsTable._arrived)
        self._route = kernel_route()
        self._route.carry(self.comm)

    def set(self, **traits: object) -> None:
        """Set traits from any thread."""
        with widget_lock:
            for name, value in traits.items():
                setattr(self, name, value)

    def send(self, content: Any, buffers: Sequence[bytes | memoryview] | None = None) -> None:
        """Send a message to every view; nothing happens once it is closed."""
        with widget_lock:
            super().send(content, buffers)

    def close(self) -> None:
        """Take it from page and kernel; twice is fine."""
        self._answers.close()
        if self.comm is not None:
            self._route.forget(self.comm)
        with widget_lock:
            super().close()

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.send({"v": 1, **message})

    def _arrived(self, content: object, buffers: object) -> None:
        self._answers.receive(content)
