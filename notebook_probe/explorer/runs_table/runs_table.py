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
from notebook_probe.explorer.kernel import kernel_route
from notebook_probe.explorer.leaving import widget_lock
from notebook_probe.explorer.runs_table.answers import Answers
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.explorer.runs_table.table_source import TableSource
from notebook_probe.lineage.table import LineageTable

__all__ = ["RunsTable", "css", "esm"]

SHEETS = (
    "css/base.css",
    "css/dialog.css",
    "css/forced_colors.css",
    "runs_table/view.css",
    "runs_table/picture.css",
)


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
    source : TableSource
        Functions that read and mark runs.
    kept : mapping, optional
        Arrangement to begin with.

    Attributes
    ----------
    table : dict
        Result of `notebook_probe.lineage.view.view_of`.
    chosen : str
        Location of the run that is open below; empty for none.
    others : tuple of str
        Locations of the overlaid runs.
    said : str
        Result of a click, as text.
    kept : dict
        Columns, order, filter and picture, as a view has arranged them last.
    can_mark : bool
        True if names, tags and notes can be edited.
    """

    table = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)
    others = TypedTuple(traitlets.Unicode()).tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    kept = traitlets.Dict().tag(sync=True)
    can_mark = traitlets.Bool().tag(sync=True)

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        table: LineageTable,
        source: TableSource,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        rows = OpenRows(table)
        can_mark = source.mark is not None
        with widget_lock:
            super().__init__(
                table=rows.view, kept=dict(kept or {}), can_mark=can_mark, _esm=esm(), _css=css()
            )
            self._answers = Answers(rows, source, self._tell)
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
        """Remove the table from page and kernel; calling it twice is fine."""
        self._answers.close()
        if self.comm is not None:
            self._route.forget(self.comm)
        with widget_lock:
            super().close()

    def _tell(self, message: Mapping[str, Any]) -> None:
        self.send({"v": 1, **message})

    def _arrived(self, content: object, buffers: object) -> None:
        self._answers.receive(content)
