"""Probes of a flight recorder: cheap quantities, chosen from those of the alerts."""

from __future__ import annotations

from notebook_probe.model.map import ModelMap
from notebook_probe.run.attach.default_places import root
from notebook_probe.run.attach.presets import DEFAULT, Preset, PresetRow, resolve_presets
from notebook_probe.run.attach.request import ResolvedRequest
from notebook_probe.run.flight.schedule import FLIGHT

__all__ = ["FLIGHT_PRESET", "flight_probes"]

FLIGHT_PRESET = Preset(
    "flight",
    "What the default preset measures, and what alerts look at that costs next to nothing more.",
    (
        PresetRow((*DEFAULT, "grad_rms", "range_headroom_bits"), schedule=FLIGHT),
        PresetRow(("grad_norm", "grad_depth_slope", "clip_coefficient"), root, FLIGHT),
    ),
)
"""Quantities made of sums that are pooled over a tensor once: no copy, no factorization."""


def flight_probes(model_map: ModelMap) -> ResolvedRequest:
    """Resolve the probes of a flight recorder, measured at every step, whatever the budget."""
    found = resolve_presets(model_map, [FLIGHT_PRESET])
    for probe in found.probes:
        # A recorder of the last steps with gaps would miss the step that matters.
        probe.may_stretch = False
    return found
