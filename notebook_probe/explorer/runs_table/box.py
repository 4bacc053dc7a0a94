"""The table, and below it the Explorer in which its runs open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipywidgets import VBox
from traitlets import TraitError

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.explorer import Explorer
from notebook_probe.explorer.runs_table.last_arrangement import KeptTable
from notebook_probe.explorer.runs_table.runs_table import RunsTable
from notebook_probe.explorer.runs_table.table_source import TableSource
from notebook_probe.lineage.table import LineageTable

__all__ = ["runs_box"]


def runs_box(
    table: LineageTable,
    explorer_of: Callable[[str], Explorer],
    source: TableSource,
    kept: KeptTable,
) -> VBox:
    """Return the table, with the Explorer of the chosen run below it and the ticked runs overlaid.

    Parameters
    ----------
    table : LineageTable
        The runs.
    explorer_of : callable
        The Explorer of the run at a location.
    source : TableSource
    kept : KeptTable
        Arrangement of the table when it was last used, and where the next one goes.
    """
    rows = RunsTable(table, source, kept.read())
    box = VBox([rows])

    def choose(change: Any) -> None:
        for shown in box.children[1:]:
            shown.close()
        try:
            opened = [explorer_of(change.new)] if change.new else []
        except (ProbeError, OSError) as error:
            box.children = (rows,)
            rows.set(said=str(error))
            return
        box.children = (rows, *opened)
        rows.set(said="")
        for explorer in opened:
            explorer.observe(unticked_there, "others")
            overlay(rows)

    def overlay(_: object) -> None:
        """Set the Explorer's other runs to the ticked ones."""
        for explorer in box.children[1:]:
            try:
                explorer.others = rows.others
            except (ProbeError, OSError, ValueError, TraitError) as error:
                rows.set(said=str(error))

    def unticked_there(change: Any) -> None:
        """Copy ticks from the Explorer's own list of runs."""
        if change.owner in box.children:
            rows.set(others=change.new)

    rows.observe(lambda change: kept.write(change.new), "kept")
    rows.observe(choose, "chosen")
    rows.observe(overlay, "others")
    return box
