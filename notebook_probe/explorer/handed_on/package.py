"""Saved panel: messages, front end and as many frames as fit, in one text."""

from __future__ import annotations

import base64
import json
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.assets import css, esm
from notebook_probe.explorer.draw.what_has_values import COUNTS, RecordedModules
from notebook_probe.explorer.handed_on.coding import EXACT, coded
from notebook_probe.explorer.handed_on.frames import SavedFrames, alone
from notebook_probe.explorer.handed_on.left import SavedLeft
from notebook_probe.explorer.messages.alert_rows import AlertMessages
from notebook_probe.explorer.messages.catalogue import PanelCatalogue
from notebook_probe.explorer.messages.defaults import HOMES
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.model_message import ModelMessages
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.messages.probe_rows import ProbeRows
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.status_message import N_RECENT, StatusMessages
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.output import OutputPart
from notebook_probe.explorer.parts.part import Seen
from notebook_probe.explorer.save.code import CODE_AXES, TEMPLATES
from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import StatusHead

__all__ = ["GRAPH", "MOST_BYTES", "Looked", "Package", "Packer", "Place"]

MOST_BYTES = 2_000_000
"""Maximum size of a saved panel."""
COARSER = (300, 150, 75, 36)
"""Columns of the home quantity, where there is no room for more."""
GRAPH = "the graph of the network"
LEFT = "the line that was left for a branch"
MOST_NAMED = 6
"""Errors of damaged parts that are named."""
SPARE = 20_000
"""Bytes reserved for the page around the package and the names that were left out."""

Place: TypeAlias = Literal["file", "notebook"]
Message: TypeAlias = Mapping[str, Any]
Make: TypeAlias = Callable[[], bytes | None]


@dataclass(frozen=True, slots=True)
class Looked:
    """The present and former selection of a panel."""

    selection: PanelSelection
    homes: Sequence[str] = ()
    """Quantities that the heat map has shown, the last one last."""


@dataclass(frozen=True, slots=True)
class Package:
    """Text of base64, and what there was no room for, as text."""

    text: str
    left_out: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    """Errors of damaged parts of the record, as text; everything else is packed."""


class Packer:
    """Pack a source repeatedly, reading only new rows.

    Parameters
    ----------
    source : RunSource
        A run or an opened record.
    controls : Controls, optional
        The live run's side for requests, which knows the parent branch.

    Attributes
    ----------
    source : RunSource
    """

    def __init__(self, source: RunSource, controls: Controls | None = None) -> None:
        self.source = source
        self._frames = SavedFrames(source)
        self._left = SavedLeft(source, controls)
        self._output = OutputPart(source, None)  # of the record, as a run may be closed
        self._output.hear({"v": VERSION, "type": "show_output", "on": True})
        self._recorded = RecordedModules()
        self._unreadable: dict[str, None] = {}
        self._opened = OpenedStatus(source)
        self._lock = threading.Lock()  # a user and the refresher may pack at once

    def package(
        self,
        looked: Looked,
        head: StatusHead,
        place: Place,
        beside: int = 0,
        most_bytes: int = MOST_BYTES,
    ) -> Package:
        """Pack at most ``most_bytes``; a file also gets what was not looked at.

        Parameters
        ----------
        beside : int
            Bytes that are stored next to the package, such as a picture, and count as well.
        """
        with self._lock:
            self._unreadable |= _texts(self._recorded.look(self.source))
            return self._package(looked, head, place, beside, most_bytes)

    def _package(
        self, looked: Looked, head: StatusHead, place: Place, beside: int, most_bytes: int
    ) -> Package:
        selection, series = looked.selection, self._series(looked.selection)
        lines, errors = self._frames.readable_lines(series, selection)
        # base64 writes three bytes as four characters.
        box = _Box((most_bytes - beside) * 3 // 4 - SPARE - sum(map(len, _front_end())))
        box.unreadable |= self._unreadable | _texts(errors)
        first = [*self._messages(looked.selection, head, lines)]
        if place == "file":  # a notebook has what its cells have printed
            seen = Seen(head, looked.selection)
            output = {**self._output.state(seen), "live": False}
            first.append({"v": VERSION, "type": "output", **output})
        box.take(coded({"first": first}))
        box.put("lines", "", "lines", lambda: coded(*lines, [EXACT]))
        box.put("left_lines", "", LEFT, lambda: self._left.lines(series, selection))
        for kind, name, make in self._pieces(looked, everything=place == "file"):
            if not (name == selection.home and kind == "heat"):
                box.put(kind, name, name, make)
            elif not box.put(kind, name, name, make):
                self._put_coarser(box, selection)
        for quantity in [key for kind, key, _ in box.pieces if kind == "heat"]:
            make = partial(self._left.heat, quantity, selection)
            box.put("left_heat", quantity, f"{quantity} of {LEFT}", make)
        looks = [
            one for one in reversed(self._frames.kept_looks()) if box.put_look(self._frames, one)
        ]
        saved = self._saved(looked.selection, place, beside, most_bytes, box)
        kept = {"v": VERSION, "type": "looks", "looks": looks[::-1], "asked": [], "missed": []}
        text = _packed([*first, kept, saved], box.pieces)
        return Package(text, tuple(box.left_out), tuple(box.unreadable))

    def _put_coarser(self, box: _Box, selection: PanelSelection) -> None:
        """Pack the present heat map in fewer columns, so that there is at least a coarse one."""
        home = selection.home
        for n_columns in COARSER:
            make = partial(self._frames.heat, home, selection, n_columns)
            if home in box.left_out and box.put("heat", home, home, make):
                box.left_out = [one for one in box.left_out if one != home]
                box.left_out.append(f"{home} finer than {n_columns} columns")
        box.left_out = [*dict.fromkeys(box.left_out)]

    def _messages(
        self, selection: PanelSelection, head: StatusHead, lines: Frame
    ) -> Iterator[Message]:
        """Yield the messages that a kernel sends to a new view."""
        catalogue = PanelCatalogue(self.source, None)
        yield ModelMessages(self.source, None, catalogue).message(()) or {}
        nothing = ProbeRows([], [], [], [])
        recorded = self._recorded
        status = StatusMessages(catalogue, live=False).message(
            head=head,
            probes=nothing,
            route="",
            recorded=recorded.modules,
            logged=recorded.logged,
            tickets=[],
            greyed={},
            problems=[],
        )
        yield {**(status or {}), "can": {}, "rate": None, **_scalar(lines, recorded.logged)}
        yield alone(selection).message()
        yield AlertMessages().message(self.source.events) or {}
        yield from self._left.messages(Seen(head, selection))

    def _saved(
        self, selection: PanelSelection, place: Place, beside: int, most_bytes: int, box: _Box
    ) -> Message:
        """Return the message with the text below the bar, and what a saved panel needs."""
        self._opened.head()
        return {
            "v": VERSION,
            "type": "saved",
            "place": place,
            "open": f"nbp.open_run({json.dumps(self.source.location)}).explore()",
            "ended_ms": self._opened.last_ms,
            "nbytes": beside + (box.n_bytes + sum(map(len, _front_end()))) * 4 // 3,
            "left_out": box.left_out,
            "unreadable": _first_few([*box.unreadable]),
            "most": most_bytes,
            "clock": self._frames.clock(),
            "epochs": self._frames.epochs(),
            "colours": [[*series, colour] for series, colour in selection.colours.items()],
            "templates": TEMPLATES,
            "code_axes": CODE_AXES,
        }

    def _series(self, selection: PanelSelection) -> list[Series]:
        """Return the series that are drawn, were drawn, or are logged by the loop."""
        logged = [(ROOT, name) for name in self._recorded.logged]
        return [*dict.fromkeys([*selection.series, *logged, *selection.colours])]

    def _pieces(self, looked: Looked, everything: bool) -> Iterator[tuple[str, str, Make]]:
        """Kind, name and maker of the home quantity, then of the rest by how much it is worth."""
        seen = [*dict.fromkeys(filter(None, [looked.selection.home, *reversed(looked.homes)]))]
        for name in seen:
            yield self._quantity(name, looked.selection)
        yield "graph", GRAPH, self._frames.graph
        for name in self._others() if everything else ():
            if name not in seen:
                yield self._quantity(name, looked.selection)

    def _others(self) -> Iterable[str]:
        logged, counts = self._recorded.logged, [*COUNTS]
        measured = [one for one in self._recorded.modules if one not in [*logged, *counts]]
        first = [one for one in HOMES if one in measured]
        return dict.fromkeys([*first, *measured, *_vector_names(self.source), *counts])

    def _quantity(self, name: str, selection: PanelSelection) -> tuple[str, str, Make]:
        kind = "heat" if name in self._recorded.modules else "vectors"
        return kind, name, partial(getattr(self._frames, kind), name, selection)


class _Box:
    """Pieces that are packed as long as there is room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.pieces: list[tuple[str, str, bytes]] = []
        self.left_out: list[str] = []
        self.unreadable: dict[str, None] = {}
        self.n_bytes = 0

    def take(self, content: bytes) -> bool:
        """Reserve room for a content; return whether there is enough."""
        fits = len(content) <= self._room - self.n_bytes
        self.n_bytes += len(content) if fits else 0
        return fits

    def put(self, kind: str, key: str, words: str, make: Make) -> bool:
        """Pack a piece and return whether it fits; one that does not fit is listed by name.

        One that cannot be read is listed by its error.
        """
        try:
            content = make()
        except RecordFormatError as error:
            self.unreadable |= _texts([error])
            return False
        if content is None:
            return False
        fits = self.take(content)
        if fits:
            self.pieces.append((kind, key, content))
        else:
            self.left_out.append(words)
        return fits

    def put_look(self, frames: SavedFrames, row: Mapping[str, Any]) -> bool:
        module, step = row["module"], row["step"]
        words = f"the look at {module} of step {step}"
        return self.put("look", f"{step} {module}", words, lambda: frames.look(module, step))


def _first_few(texts: Sequence[str]) -> list[str]:
    """Return the first texts, and how many more there are: a page has little room for them."""
    rest = len(texts) - MOST_NAMED
    return [*texts[:MOST_NAMED], *([f"and {rest} more"] if rest > 0 else [])]


def _texts(errors: Iterable[RecordFormatError]) -> dict[str, None]:
    return dict.fromkeys(map(str, errors))


def _packed(first: Sequence[Message], pieces: Iterable[tuple[str, str, bytes]]) -> str:
    """Return the length of the head, the head with all offsets, then the contents."""
    code, style = _front_end()
    places: list[tuple[str, str, int, int]] = []
    contents = [code, style]
    at = len(code) + len(style)
    for kind, key, content in pieces:
        places.append((kind, key, at, len(content)))
        contents.append(content)
        at += len(content)
    told = {
        "v": VERSION,
        "esm": [0, len(code)],
        "css": [len(code), len(style)],
        "first": [*first],
        "pieces": places,
    }
    head = zlib.compress(json.dumps(told, separators=(",", ":"), allow_nan=False).encode(), 9)
    return base64.b64encode(b"".join([struct.pack("<I", len(head)), head, *contents])).decode()


@cache
def _front_end() -> tuple[bytes, bytes]:
    """Return the panel's own code and style, deflated."""
    return zlib.compress(esm().encode(), 9), zlib.compress(css().encode(), 9)


def _scalar(lines: Frame, logged: Sequence[str]) -> dict[str, Any]:
    """Return the first logged scalar, for the bar: its name, last value, and those before."""
    message, [numbers] = lines
    found = (
        one for one in message["series"] if one["module"] == ROOT and one["quantity"] in logged
    )
    one = next(found, None)
    if one is None:
        return {}
    stop = one["offset"] + 2 * one["n"]
    recent = np.frombuffer(numbers, "<f4")[max(one["offset"] + one["n"], stop - N_RECENT) : stop]
    told = [json_number(value) for value in recent]
    return {"scalar": (one["quantity"], one["last_value"], told)}


def _vector_names(source: RunSource) -> list[str]:
    streams = source.elements.values()
    return [*dict.fromkeys(one.name for stream in streams for one in stream.variables)]
