"""Recorded sounds by step, as few as a message holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import ROOT, Source
from notebook_probe.summary.views.images import shown_steps
from notebook_probe.summary.views.overlay import of_two_runs

__all__ = ["sounds"]

MOST_BYTES = 4_000_000
"""Maximum bytes of all sounds that are sent."""
RATE = 16_000
"""Samples per second, unless `Run.annotate` was given a ``sample_rate``."""


def sounds(source: Source, selection: PanelSelection) -> dict[str, Any] | None:
    """Sounds at a step: arrays of samples from -1 to 1 whose name ends in ``_audio``."""
    return of_two_runs(source, selection, _sounds)


def _sounds(source: Source) -> list[dict[str, Any]]:
    names = [name for name in source.blobs if name.endswith("_audio")]
    found = [source.series("", name) for name in names if ROOT in source.blobs[name]]
    mono = [one for one in found if one.ndim == 2 and one.sizes["step"]]
    if not mono:
        return []
    given = getattr(source, "annotations", {}).get("sample_rate", RATE)
    rate = int(given) if isinstance(given, int | float) and 3000 <= given <= 384_000 else RATE
    room = MOST_BYTES // len(mono)
    return [_shown_clips(one, rate, room) for one in mono]


def _shown_clips(series: xr.DataArray, rate: int, room: int) -> dict[str, Any]:
    """Return the clips of some steps, as many as there is room for."""
    shown = shown_steps(series.sizes["step"], room // max(1, 4 * series.shape[1]))
    samples = series.isel(step=shown).values.astype(np.float32)
    steps = series.step.values[shown].tolist()
    return {"name": str(series.name), "steps": steps, "samples": samples, "rate": rate}
