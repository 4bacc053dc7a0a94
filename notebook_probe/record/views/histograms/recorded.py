"""Recorded histograms: of parameters, and of a model's tagged values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from notebook_probe.record.format.source import ROOT, Source

__all__ = ["Histograms", "histogram_names", "recorded_histograms"]

Floats = npt.NDArray[np.float64]

OF_PARAMETER = "param_histogram", "weight_min", "weight_max"
SUFFIX = "_histogram"
"""Suffix of an array (step, 2, edge): bin edges in its first row, counts in its second."""


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """Equal bins at each step.

    Attributes
    ----------
    steps : list of int
    counts : array (step, bin)
        NaN beyond the last one.
    lowest, highest : array (step,)
        Range of the bins; equal if all elements of a parameter are.
    """

    steps: list[int]
    counts: Floats
    lowest: Floats
    highest: Floats


def histogram_names(source: Source) -> list[str]:
    """Parameters that have them, then the arrays of tags."""
    streams = [
        stream
        for stream in source.vectors.values()
        if any(variable.name == OF_PARAMETER[0] for variable in stream.variables)
    ]
    of_tags = [name for name, own in source.blobs.items() if ROOT in own and _is_tag(own[ROOT])]
    return [*dict.fromkeys(module for stream in streams for module in stream.modules), *of_tags]


def recorded_histograms(
    source: Source, name: str, places: Callable[[int], Sequence[int]] = range
) -> Histograms:
    """Read the histograms of one name.

    Parameters
    ----------
    source : Source
    name : str
        Name of a parameter, or of an array, ``<tag>_histogram``.
    places : callable
        Chooses the steps to read, given their number.

    Raises
    ------
    UnknownNameError
        Nothing is recorded there.
    """
    own = source.blobs.get(name, {}).get(ROOT)
    if own is not None and _is_tag(own):
        return _of_tag(source.series(ROOT, name), places)
    counts = source.series(name, OF_PARAMETER[0])
    counts = counts.isel(step=[*places(counts.sizes["step"])]).load()
    ends = [source.series(name, end).reindex(step=counts.step) for end in OF_PARAMETER[1:]]
    return Histograms(counts.step.values.tolist(), counts.values, *(end.values for end in ends))


def _of_tag(rows: xr.DataArray, places: Callable[[int], Sequence[int]]) -> Histograms:
    rows = rows.isel(step=[*places(rows.sizes["step"])])
    edges, counts = np.moveaxis(np.asarray(rows.values, np.float64), 1, 0)
    # Edges beyond the last are filled with NaN, as their number differs between steps.
    last = np.maximum(np.isfinite(edges).sum(axis=1) - 1, 0)
    highest = np.take_along_axis(edges, last[:, None], axis=1)[:, 0]
    return Histograms(rows.step.values.tolist(), counts[:, :-1], edges[:, 0], highest)


def _is_tag(array: xr.DataArray) -> bool:
    is_called_so = str(array.name).endswith(SUFFIX)
    return is_called_so and array.ndim == 3 and array.shape[1] == 2 and array.shape[2] > 1
