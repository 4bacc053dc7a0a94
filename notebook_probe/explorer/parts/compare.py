"""Compare: the other runs, and those that are overlaid on this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.compare.reference import absolute
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.others.overlay import RunOverlay
from notebook_probe.explorer.others.shelf import Shelf
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.store.location import stem
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.actions.comparing_actions import places_of_references
from notebook_probe.run.attach.requests import CompareWith, Request
from notebook_probe.run.controls import Controls

__all__ = ["Compare", "CompareWithClick", "ListRuns"]


class ListRuns(TypedDict):
    """A view shows the list of runs: read the folder again."""

    v: int
    type: Literal["list_runs"]


class CompareWithClick(TypedDict):
    """Alert once this run differs from these; from none if there is none."""

    v: int
    type: Literal["compare_with"]
    id: str
    runs: list[str]


def _compare_with(click: CompareWithClick) -> Request:
    return CompareWith(tuple(click["runs"]))


class Compare(Part):
    """Runs that can be compared and runs that are; chosen in the panel's selection."""

    name: ClassVar = "compare"
    clicks: ClassVar = {"compare_with": Click(CompareWithClick, _compare_with)}
    heard: ClassVar = {"list_runs": ListRuns}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._shelf = Shelf(source)
        self._beside = RunOverlay(source, self._shelf)

    def state(self, seen: Seen) -> Mapping[str, Any]:
        shelf = self._shelf
        shelf.keep(seen.selection.others)
        self._beside.offer(seen.selection)
        references = places_of_references(self._source)
        chosen = {absolute(one) for one in seen.selection.others}
        return {
            "references": [stem(one) for one in references],
            "are_references": bool(references) and chosen == {*references},
            "folder": shelf.folder,
            "listed": shelf.listed,
            "problem": shelf.problem,
            "n_left_out": shelf.n_left_out,
            "own": shelf.own,
            "runs": shelf.rows(),
            "refused": self._beside.problems,
        }

    def frames(self) -> list[Frame]:
        return self._beside.frames()

    def forget(self) -> None:
        self._beside.forget()

    def hear(self, message: ListRuns) -> None:
        self._shelf.look()
