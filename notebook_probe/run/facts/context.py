"""Parameters that all facts share: the model, its observer, and where findings go."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from notebook_probe.probes.observer import Observer
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.later import Later

__all__ = ["FactContext"]


@dataclass(frozen=True, slots=True)
class FactContext:
    """The run that facts are about.

    Attributes
    ----------
    model : weak reference to nn.Module
    observer : Observer
        Of the model.
    findings : FactFindings
        Receives what is found.
    later : Later
        Reads numbers from tensors without waiting for a device.
    """

    model: weakref.ref[nn.Module]
    observer: Observer
    findings: FactFindings
    later: Later

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the modules of the model by path, without walking it."""
        return self.observer.steps.model_map.modules

    def spend(self, seconds: float) -> None:
        """Count the time of a look as spent in the open step."""
        frame = self.observer.steps.frame
        if frame is not None:
            frame.seconds += seconds
