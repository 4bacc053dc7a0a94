"""State of a live run for a panel elsewhere, apart from its record: plain values in three parts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from notebook_probe.run.attach.requests import Fitting
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import PresetInfo, ProbeStatus, QuantityInfo, StatusHead
from notebook_probe.run.remote_control.letters import CODING
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["HEAD", "PARTS", "About", "Lately", "ShownParts"]


@dataclass(frozen=True, slots=True)
class Lately:
    """State that changes while it trains; made once a second at most."""

    probes: tuple[ProbeStatus, ...]
    knobs: tuple[KnobInfo, ...]
    breakpoints: tuple[BreakpointInfo, ...]
    looks: tuple[tuple[str, int], ...]
    missed_looks: tuple[tuple[str, int, str], ...]
    rules: Mapping[str, Mapping[str, float | None]]
    """Numbers of each rule that is followed."""
    rule_states: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class About:
    """State that rarely changes."""

    attachable: tuple[QuantityInfo, ...]
    presets: tuple[PresetInfo, ...]
    fitting: Fitting
    severe: tuple[str, ...]
    restores: str


def _lately(controls: Controls) -> Lately:
    asked, missed = controls.pending_looks()
    return Lately(
        probes=tuple(controls.probes()),
        knobs=tuple(controls.knobs()),
        breakpoints=tuple(controls.breakpoint_infos()),
        looks=tuple(asked),
        missed_looks=tuple((*key, why) for key, why in missed.items()),
        rules={name: rule.numbers for name, rule in controls.rules.items()},
        rule_states=controls.rules.states(),
    )


def _about(controls: Controls) -> About:
    return About(
        attachable=tuple(controls.attachable()),
        presets=tuple(controls.preset_infos()),
        fitting=controls.fitting(),
        severe=tuple(controls.severe_rules()),
        restores=controls.restores,
    )


HEAD = "head"
PARTS: Mapping[str, type] = {HEAD: StatusHead, "lately": Lately, "about": About}
MADE: Mapping[str, tuple[Callable[[Controls], Any], float]] = {
    HEAD: (lambda controls: controls.status_head(), 0.0),
    "lately": (_lately, 1.0),
    "about": (_about, 5.0),
}
"""Function that makes each part, and the seconds for which it is not made again."""
SHARE = 0.02
"""Share of the training process's time that making a part may take; then it is made more rarely."""


class ShownParts:
    """The parts as JSON values with their digests, made when they are asked for."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[float, str, Any]] = {}  # until when, digest, value

    def news(self, controls: Controls, known: Mapping[str, str]) -> dict[str, Any]:
        """Return digest and value of each part that the asking process does not have."""
        now = [(name, *self._part(name, controls)) for name in PARTS]
        return {
            name: {"digest": digest, "value": value}
            for name, digest, value in now
            if known.get(name) != digest
        }

    def _part(self, name: str, controls: Controls) -> tuple[str, Any]:
        until_s, digest, value = self._made.get(name, (0.0, "", None))
        if not digest or time.monotonic() >= until_s:
            make, seconds = MADE[name]
            begun_s = time.thread_time()
            value = CODING.plain(make(controls))
            digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
            # A model of ten thousand probes takes tenths of a second of the training's process.
            pause_s = max(seconds, (time.thread_time() - begun_s) / SHARE)
            self._made[name] = time.monotonic() + pause_s, digest, value
        return digest, value
