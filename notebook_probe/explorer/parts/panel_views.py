"""Saved views in the panel: their names, what each shows in this run, and the clicks on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.explorer.saved_views import ViewFile, ViewSettings
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["EditView", "SavedViewsPart"]


class EditView(TypedDict):
    """Save what is looked at under a name, note that a view is shown, or remove it."""

    v: int
    type: Literal["edit_view"]
    act: Literal["save", "show", "remove"]
    name: str


class SavedViewsPart(Part):
    """Saved views; a click in the panel saves, shows or removes one."""

    name: ClassVar = "saved_views"
    heard: ClassVar = {"edit_view": EditView}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._file = ViewFile.of(source)
        self._asked: list[EditView] = []
        self._problem = ""
        self._known: tuple[object, list[dict[str, Any]]] = (object(), [])

    def state(self, seen: Seen) -> Mapping[str, Any]:
        # Not when the message arrives: the saved selection is the one before the click.
        while self._asked:
            self._edit(self._asked.pop(0), seen.selection)
        return {"rows": self._rows(), "file": str(self._file.path), "problem": self._problem}

    def hear(self, message: EditView) -> None:
        self._asked.append(message)

    def _edit(self, asked: EditView, selection: PanelSelection) -> None:
        acts: dict[str, Callable[[str], None]] = {
            "save": lambda name: self._file.save(name, ViewSettings.of(selection)),
            "show": self._file.remember,
            "remove": self._file.remove,
        }
        self._problem = ""
        try:
            acts[asked["act"]](asked["name"])
        except ProbeError as error:
            self._problem = str(error)

    def _rows(self) -> list[dict[str, Any]]:
        """Return what each view shows here; read again when the file or the modules change."""
        streams = [stream.modules for stream in self._source.streams.values()]
        key = (self._file.stamp, self._source.modules, streams)
        if key != self._known[0]:
            try:
                self._known = key, [self._row(name) for name in self._file.names]
            except ProbeError as error:
                self._problem = str(error)
                self._known = key, []
        return self._known[1]

    def _row(self, name: str) -> dict[str, Any]:
        shown = self._file.view(name).applied(PanelSelection(), self._source)
        settings = ViewSettings.of(shown).to_json()
        if not settings["home"]:
            del settings["home"]  # the quantity that is looked at stays
        return {"name": name, "shows": settings}
