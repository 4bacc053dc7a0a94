"""Recorded pictures by step, as few as a message holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import ROOT, Source
from notebook_probe.summary.views.overlay import of_two_runs

__all__ = ["pictures", "shown_steps"]

MOST_BYTES = 2_000_000
"""Maximum bytes of all pictures that are sent."""


def pictures(source: Source, selection: PanelSelection) -> dict[str, Any] | None:
    """Input images, and images from the model, at a step, with those of a compared run."""
    return of_two_runs(source, selection, _pictures)


def _pictures(source: Source) -> list[dict[str, Any]]:
    names = [name for name in source.blobs if name == "input_image" or name.endswith("_image")]
    found = [source.series("", name) for name in names if ROOT in source.blobs[name]]
    in_colour = [one for one in found if one.ndim == 4 and one.sizes["step"]]
    if not in_colour:
        return []
    room = MOST_BYTES // len(in_colour)
    return [_shown_images(one, room) for one in in_colour]


def _shown_images(series: xr.DataArray, room: int) -> dict[str, Any]:
    """Return the images of some steps, as many as there is room for."""
    n_steps = series.sizes["step"]
    shown = shown_steps(n_steps, room // int(np.prod(series.shape[1:])))
    pixels = np.nan_to_num(series.isel(step=shown).values).clip(0, 255).astype(np.uint8)
    return {"name": str(series.name), "steps": series.step.values[shown].tolist(), "pixels": pixels}


def shown_steps(n: int, most: int) -> list[int]:
    """Return a limited number of ``n`` places, evenly, with first and last; at least one.

    Examples
    --------
    >>> shown_steps(10, 4), shown_steps(3, 10), shown_steps(5, 0)
    ([0, 3, 6, 9], [0, 1, 2], [4])
    """
    if most < 2:
        return [n - 1]
    if n <= most:
        return [*range(n)]
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
