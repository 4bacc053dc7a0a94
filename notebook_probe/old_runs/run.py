"""A run as its reader returns it: plain values, of any tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.old_runs.images import OldImages
from notebook_probe.record.format.source import Steps

__all__ = ["OldHistograms", "OldRun", "OldSeries"]


@dataclass(frozen=True, slots=True)
class OldSeries:
    """Numbers that were logged under one name.

    Attributes
    ----------
    name : str
        Name that the tool knows.
    steps : int64 array
        Growing.
    times_ms : int64 array
        Wall time of each, in milliseconds since 1970; 0 if unknown.
    values : float64 array
    """

    name: str
    steps: Steps
    times_ms: Steps
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OldHistograms:
    """Histograms that were logged under one name.

    Attributes
    ----------
    module, quantity : str
        Module and quantity of the series in a record; the module is empty for the whole model.
    name : str
        Name as the tool has it.
    steps, times_ms : int64 array
        Same as in `OldSeries`.
    bins : float64 array, (step, 3, bin)
        Left edges, right edges and counts.
    """

    module: str
    quantity: str
    name: str
    steps: Steps
    times_ms: Steps
    bins: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OldRun:
    """One run of another tool.

    Attributes
    ----------
    tool : str
        Name of the tool for messages, such as ``"W&B"``.
    name, run_id : str
        Name and id that the tool uses; empty if the tool stores none.
    series : tuple of OldSeries
    histograms : tuple of OldHistograms
    images : tuple of OldImages
    config : mapping
        Settings of the training.
    notes : mapping
        Tags, notes and other words of the user.
    created_ms : int
        Start, in milliseconds since 1970; 0 if unknown.
    has_ended : bool, optional
        True if it has ended well, False if it has not ended or has failed; None if unknown.
    remarks : tuple of str
        Sentences on parts that are not read: up to where a file is read, and why.
    """

    tool: str
    name: str = ""
    run_id: str = ""
    series: tuple[OldSeries, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    created_ms: int = 0
    has_ended: bool | None = None
    remarks: tuple[str, ...] = ()
    histograms: tuple[OldHistograms, ...] = ()
    images: tuple[OldImages, ...] = ()

    @property
    def updated_ms(self) -> int:
        """Time of the last number; 0 if unknown."""
        every: list[OldSeries | OldHistograms | OldImages]
        every = [*self.series, *self.histograms, *self.images]
        return max((int(one.times_ms.max()) for one in every), default=0)
