"""Histograms of parameters and tags by step, each on one range."""

from __future__ import annotations

from functools import partial
from typing import Any

from notebook_probe.errors import UnknownNameError
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.histograms.common_range import on_common_range
from notebook_probe.record.views.histograms.recorded import histogram_names, recorded_histograms
from notebook_probe.summary.views.images import shown_steps

__all__ = ["histogram_table"]

MOST_STEPS = 60


def histogram_table(source: Source, selection: PanelSelection) -> dict[str, Any] | None:
    """Histograms of parameters and of tags, each between the same ends at every step."""
    found = [_shown_histograms(source, name) for name in histogram_names(source)]
    known = [one for one in found if one is not None]
    return {"series": known} if known else None


def _shown_histograms(source: Source, name: str) -> dict[str, Any] | None:
    """Return histograms of some steps in common bins; None if there are none."""
    try:
        own = recorded_histograms(source, name, partial(shown_steps, most=MOST_STEPS))
        bins = on_common_range(own.counts, own.lowest, own.highest)
    except (UnknownNameError, ValueError):  # nothing is recorded yet, or nothing finite
        return None
    return {"name": name, "steps": own.steps, "edges": bins.edges, "counts": bins.counts}
