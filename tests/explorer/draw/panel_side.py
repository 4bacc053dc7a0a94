"""A panel's side of drawings, for tests: a source, places, time, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from notebook_probe.explorer.draw.drawing import PanelState
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.fakes import FakeSource, FakeStream

HOME = PanelSelection(home="grad_norm")


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class PanelSide:
    """A panel's side of drawings: a source, a place for each view, and what is shown there."""

    def __init__(self, run: Callable[[Callable[[], None]], None] | None = None) -> None:
        self.stream = FakeStream("every_1", ["a", "b"], ["grad_norm"])
        self.stream.append(range(3), grad_norm=1.0)
        self.source = FakeSource(self.stream, modules=("a", "b"))
        self.clock = Clock()
        self.drawings = Drawings(self.source, self.clock, run or (lambda task: task()))
        self.shown: list[str] = []
        self.frames: list[Mapping[str, Any]] = []
        self.rooms: dict[str, tuple[int, float] | None] = {}
        self.told: list[Mapping[str, Any]] = []
        self.state, self.selection, self.n_hellos = "training", HOME, 1

    def refresh(self) -> list[str]:
        """The names of the views that were drawn."""
        moment = PanelState(self.source.revision, self.selection, self.state, self.n_hellos)
        before = len(self.shown)
        self.told = [*self.drawings.news(moment)]
        self.drawings.draw(moment, lambda name: self.rooms.get(name, (600, 1.0)), self._show)
        return self.shown[before:]

    def trains(self) -> None:
        self.stream.append([self.stream.n_rows], grad_norm=1.0)

    def row(self, name: str) -> Mapping[str, Any]:
        self.refresh()
        self.n_hellos += 1  # so that everything is told
        self.refresh()
        [views] = [message for message in self.told if message["type"] == "views"]
        return next(row for row in views["rows"] if row["name"] == name)

    def _show(self, name: str, frame: tuple[Mapping[str, Any], list[memoryview]]) -> None:
        self.shown.append(name)
        self.frames.append(frame[0])


def nothing(source: object, selection: object) -> None:
    """Nothing to draw yet."""
