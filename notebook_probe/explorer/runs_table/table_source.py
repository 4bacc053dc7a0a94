"""Functions that read and mark the runs of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from notebook_probe.explorer.runs_table.arriving import AskAgain
from notebook_probe.explorer.runs_table.filtering import Condition
from notebook_probe.explorer.runs_table.following import ReadRow

__all__ = ["Mark", "TableSource"]

Mark: TypeAlias = Callable[[str, str, str], Mapping[str, Any]]
"""Mark the run at a location: a field and its text; returns the changed cells of its row."""


@dataclass(frozen=True)
class TableSource:
    """Functions of a table.

    Attributes
    ----------
    condition : callable
        Reads the text of a condition for the filter.
    read_row : callable
        The row of an opened record, for runs that grow.
    again : callable, optional
        Function that returns the present rows, with runs that have started since.
    mark : callable, optional
        Marks a run; without it the table offers no edits.
    """

    condition: Condition
    read_row: ReadRow
    again: AskAgain | None = None
    mark: Mark | None = None
