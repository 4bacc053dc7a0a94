"""The table as a widget, and the box in which a run opens below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets
from ipywidgets import VBox

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.explorer import Explorer

__all__ = ["RunsTable", "runs_box"]


@cache
def _esm() -> str:
    return files(__package__).joinpath("view.js").read_text(encoding="utf-8")


@cache
def _css() -> str:
    """Its own sheet, over the colours of the panel."""
    base = files("notebook_probe.explorer").joinpath("css/base.css").read_text(encoding="utf-8")
    own = files(__package__).joinpath("view.css").read_text(encoding="utf-8")
    return base.replace(".nbp-panel", ".nbp-runs") + own


class RunsTable(anywidget.AnyWidget):
    """Rows of runs that are sorted in the browser.

    Attributes
    ----------
    table : dict
        As `notebook_probe.lineage.view.view_of` gives it.
    chosen : str
        Where the run is whose row was clicked; empty before.
    said : str
        What became of the click, in words.
    """

    table = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__(table=dict(table), _esm=_esm(), _css=_css())


def runs_box(table: Mapping[str, Any], explorer_of: Callable[[str], Explorer]) -> VBox:
    """The table, and below it the Explorer of the run whose row was clicked last.

    Parameters
    ----------
    table : mapping
        As `notebook_probe.lineage.view.view_of` gives it.
    explorer_of : callable
        The Explorer of the run that is at a place.
    """
    rows = RunsTable(table)
    box = VBox([rows])

    def choose(change: Any) -> None:
        for shown in box.children[1:]:
            shown.close()
        try:
            opened = [explorer_of(change.new)] if change.new else []
        except (ProbeError, OSError) as error:
            box.children, rows.said = (rows,), str(error)
            return
        box.children, rows.said = (rows, *opened), ""

    rows.observe(choose, "chosen")
    return box
