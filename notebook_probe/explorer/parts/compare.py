"""Compare: which other runs there are, and what of them is drawn beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.explorer.others.shelf import Shelf
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.record.format.source import Source
from notebook_probe.run.controls import Controls

__all__ = ["Compare", "ListRuns"]


class ListRuns(TypedDict):
    """A view shows the list of runs: read the folder again."""

    v: int
    type: Literal["list_runs"]


class Compare(Part):
    """The runs that there are, and those that are compared; chosen in the panel's selection."""

    name: ClassVar = "compare"
    heard: ClassVar = {"list_runs": ListRuns}

    def __init__(self, source: Source, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._shelf = Shelf(source)

    def state(self, seen: Seen) -> Mapping[str, Any]:
        shelf = self._shelf
        shelf.keep(seen.selection.others)
        return {
            "folder": shelf.folder,
            "listed": shelf.listed,
            "problem": shelf.problem,
            "n_left_out": shelf.n_left_out,
            "runs": shelf.rows(),
        }

    def hear(self, message: ListRuns) -> None:
        self._shelf.look()
