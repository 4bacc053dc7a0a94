"""Histograms of parameters by step, each parameter on one range."""

from __future__ import annotations

from typing import Any

from notebook_probe.errors import UnknownNameError
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.common_range import on_common_range
from notebook_probe.summary.views.images import shown_steps

__all__ = ["histogram_table"]

MOST_STEPS = 60
COUNTS, LOW, HIGH = "param_histogram", "weight_min", "weight_max"


def histogram_table(source: Source, selection: PanelSelection) -> dict[str, Any] | None:
    """Histograms of parameters between the same ends at every step."""
    found = [_told(source, parameter) for parameter in _parameters(source)]
    known = [one for one in found if one is not None]
    return {"series": known} if known else None


def _parameters(source: Source) -> list[str]:
    streams = [
        stream
        for stream in source.vectors.values()
        if any(variable.name == COUNTS for variable in stream.variables)
    ]
    return [*dict.fromkeys(module for stream in streams for module in stream.modules)]


def _told(source: Source, parameter: str) -> dict[str, Any] | None:
    try:
        counts = source.series(parameter, COUNTS)
        shown = shown_steps(counts.sizes["step"], MOST_STEPS)
        counts = counts.isel(step=shown)
        ends = [source.series(parameter, end).reindex(step=counts.step) for end in (LOW, HIGH)]
        bins = on_common_range(counts.values, *(end.values for end in ends))
    except (UnknownNameError, ValueError):  # nothing is recorded yet, or nothing finite
        return None
    return {
        "name": parameter,
        "steps": counts.step.values.tolist(),
        "edges": bins.edges,
        "counts": bins.counts,
    }
