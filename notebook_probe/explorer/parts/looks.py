"""Looks: the tensors of a module at a step, kept on request, shown as maps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

import numpy as np

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.look_blocks import Maps, maps_of
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.views.looks import MOST_LOOKS, Look, looks_of
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import LookAt, Request
from notebook_probe.run.controls import Controls

__all__ = ["LookBlock", "LookClick", "LookRow", "LooksPart", "ShowLook"]


LONGEST_WRITE_S = 3.0
"""Seconds after which a look that was not written is reported as missing."""


class LookRow(TypedDict):
    """Row of one stored look."""

    module: str
    step: int
    nbytes: int
    why: str
    """Reason for a look without a request, or difference to a look in a step; or empty."""
    is_batch: bool
    """True for the inputs of the model alone, kept at an alert or a breakpoint."""


class LookClick(TypedDict):
    """Keep the tensors of a module in the next step."""

    v: int
    type: Literal["look"]
    id: str
    module: str


class ShowLook(TypedDict):
    """A view wants to see one that is kept; it is answered with `shown_look`."""

    v: int
    type: Literal["show_look"]
    view: str
    module: str
    step: int
    other: int
    """Step of a second look at the same module, shown next to it; -1 for none."""
    sample: int


class LookBlock(TypedDict):
    """Maps of one tensor: ``n`` of them in the buffer."""

    tensor: str
    places: list[int]
    """Channel, head or filter of each map."""
    height: int
    width: int
    offset: int
    """Offset in the buffer, in float32 elements."""
    other: NotRequired[int]
    """Offset of the same maps of the other look."""
    n_samples: int
    note: str
    facts: dict[str, Any]
    other_facts: NotRequired[dict[str, Any]]


def _look(click: LookClick) -> Request:
    return LookAt(click["module"], soon=True)


class LooksPart(Part):
    """Stored looks, the selected one, and the maps that views request."""

    name: ClassVar = "looks"
    clicks: ClassVar = {"look": Click(LookClick, _look)}
    heard: ClassVar = {"show_look": ShowLook}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._known: tuple[int, list[Look]] = 0, []
        self._wanted: list[ShowLook] = []
        self._known_s: dict[tuple[str, int], float] = {}

    def state(self, seen: Seen) -> Mapping[str, Any]:
        rows = self.rows()
        asked, missed = ([], {}) if self._controls is None else self._controls.pending_looks()
        return {
            "looks": rows,
            "most": MOST_LOOKS,
            "asked": [list(one) for one in asked],
            "missed": [[*key, why] for key, why in missed.items()],
        }

    def rows(self) -> list[LookRow]:
        """Every look that is kept, by step."""
        return [
            {
                "module": one.module,
                "step": one.step,
                "nbytes": one.nbytes,
                "why": one.why,
                "is_batch": one.is_batch,
            }
            for one in self._kept()
        ]

    def hear(self, message: ShowLook) -> None:
        # One request per view: a reader who steps through samples wants the last one only.
        self._wanted = [one for one in self._wanted if one["view"] != message["view"]]
        self._wanted.append(message)

    def frames(self) -> list[Frame]:
        wanted, self._wanted = self._wanted, []
        shown = [(one, self._shown(one)) for one in wanted]
        # A look that is being written is shown when it is there, not reported as missing.
        self._wanted += [
            one for one, (message, _) in shown if message["error"] and self._comes(one)
        ]
        return [frame for one, frame in shown if one not in self._wanted]

    def _comes(self, wanted: ShowLook) -> bool:
        """Return whether the arrays of a look are written in the next moments."""
        module, step = wanted["module"], wanted["step"]
        known_s = self._known_s.setdefault((module, step), time.monotonic())
        is_young = time.monotonic() - known_s < LONGEST_WRITE_S
        is_kept = any((one.module, one.step) == (module, step) for one in self._kept())
        return self._controls is not None and is_kept and is_young

    def _kept(self) -> list[Look]:
        events = self._source.events
        # Compared by number, as events are only appended.
        if self._known[0] != len(events):
            self._known = len(events), looks_of(events, lambda: self._source.blobs)
        return self._known[1]

    def _shown(self, wanted: ShowLook) -> Frame:
        head = {"v": VERSION, "type": "shown_look", "seq": 0} | {
            key: wanted[key] for key in ("view", "module", "step", "other", "sample")
        }
        by_step = {one.step: one for one in self._kept() if one.module == wanted["module"]}
        try:
            look = by_step[wanted["step"]]
            blocks, buffers = _blocks(look, by_step.get(wanted["other"]), wanted["sample"])
        # The event of a look may be known before its arrays are written, or outlive them.
        except (LookupError, OSError, ProbeError):
            return {**head, "blocks": [], "error": "it is not written yet, or not any more"}, []
        return {**head, "blocks": blocks, "error": ""}, buffers


def _blocks(
    look: Look, other: Look | None, sample: int
) -> tuple[list[LookBlock], list[memoryview]]:
    blocks: list[LookBlock] = []
    parts: list[np.ndarray[Any, Any]] = []
    n_sent = 0
    for tensor, facts in look.facts.items():
        maps = maps_of(tensor, look.tensor(tensor).values, sample)
        _, height, width = maps.values.shape
        block: LookBlock = {
            "tensor": tensor,
            "places": maps.places,
            "height": height,
            "width": width,
            "offset": n_sent,
            "n_samples": maps.n_samples,
            "note": maps.note,
            "facts": facts.plain(),
        }
        n_sent += maps.values.size
        parts.append(maps.values)
        if other is not None and tensor in other.facts:
            block["other_facts"] = other.facts[tensor].plain()
            same = _same(maps, tensor, other, sample)
            if same is not None:
                block["other"] = n_sent
                n_sent += same.size
                parts.append(same)
        blocks.append(block)
    flat = [part.ravel() for part in parts]
    buffer = np.concatenate(flat) if flat else np.empty(0, np.float32)
    # A Float32Array has the byte order of the machine, which is little-endian nearly everywhere.
    return blocks, [memoryview(buffer.astype("<f4").tobytes())]


def _same(maps: Maps, tensor: str, other: Look, sample: int) -> np.ndarray[Any, Any] | None:
    """Return the same maps of another look; None if their size differs."""
    found = maps_of(tensor, other.tensor(tensor).values, sample, maps.places).values
    return found if found.shape == maps.values.shape else None
