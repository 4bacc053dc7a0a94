"""Cost of watching and how to reduce it; schedules edited, and presets, by a click."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypedDict

from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.requests import AttachPreset, Request, Reschedule
from notebook_probe.run.controls import Controls

__all__ = ["PresetClick", "Probes", "RescheduleClick"]


class PresetEntry(TypedDict):
    """Row of one preset."""

    name: str
    about: str
    percent: float | None


class RescheduleClick(TypedDict):
    """Change the schedule of something attached; an empty list of places means all."""

    v: int
    type: Literal["reschedule"]
    id: str
    where: list[str]
    quantity: str
    schedule: str


class PresetClick(TypedDict):
    """Attach a preset."""

    v: int
    type: Literal["preset"]
    id: str
    name: str


def _reschedule(click: RescheduleClick) -> Request:
    return Reschedule(tuple(click["where"]) or None, click["quantity"], click["schedule"])


def _preset(click: PresetClick) -> Request:
    return AttachPreset(click["name"])


class Probes(Part):
    """The account of the last steps, the budget, the presets, and what the flight recorder keeps.

    An opened record has none. The cost of each probe is in the status.
    """

    name: ClassVar = "probes"
    clicks: ClassVar = {
        "reschedule": Click(RescheduleClick, _reschedule),
        "preset": Click(PresetClick, _preset),
    }

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._presets = Throttled(self._presets_now)

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        if self._controls is None:
            return None
        rate = seen.head.steps_per_second
        return {
            "n_measured": seen.head.n_measured,
            "step_s": float(f"{1 / rate:.2g}") if math.isfinite(rate) and rate > 0 else None,
            "budget": seen.head.budget_percent,
            "presets": self._presets.value(),
            "flight": seen.head.flight,
        }

    def _presets_now(self) -> list[PresetEntry]:
        assert self._controls is not None
        return [
            {"name": one.name, "about": one.about, "percent": one.percent}
            for one in self._controls.preset_infos()
        ]
