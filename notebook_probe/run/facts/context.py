"""Parameters that all facts share: the model, its observer, and where findings go."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from notebook_probe.probes.observer import Observer
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.later import Later

__all__ = ["FactContext", "FirstOutput", "root_mean_square"]


class FirstOutput:
    """Size of the output of the first training call, until a loss was read."""

    def __init__(self) -> None:
        self._known: tuple[int, Tensor] | None = None
        self._is_over = False

    def keep(self, output: object) -> None:
        """Measure the output of a call, if it is the first one and a plain tensor of numbers."""
        # By its exact type: a tensor of another class would notice each question.
        if type(output) is Tensor and not self._is_over and output.is_floating_point():
            n, is_dense = output.numel(), output.layout is torch.strided and not output.is_meta
            self._known = (n, root_mean_square(output)) if n and is_dense else None
        self._is_over = True

    def take(self) -> tuple[int, Tensor] | None:
        """Return its number of elements and root mean square, once."""
        known, self._known = self._known, None
        return known


def root_mean_square(tensor: Tensor) -> Tensor:
    """Return the usual size of the elements, without a copy of them."""
    wide = torch.promote_types(tensor.dtype, torch.float32)  # a square overflows in float16
    norm: Tensor = torch.linalg.vector_norm(tensor.detach(), dtype=wide)
    return norm / math.sqrt(tensor.numel())


@dataclass(frozen=True, slots=True)
class FactContext:
    """The run that facts are about.

    Attributes
    ----------
    model : weak reference to nn.Module
    observer : Observer
        Observer of the model's calls.
    findings : FactFindings
        Receives what is found.
    later : Later
        Reads numbers from tensors without waiting for a device.
    first_output : FirstOutput
    """

    model: weakref.ref[nn.Module]
    observer: Observer
    findings: FactFindings
    later: Later
    first_output: FirstOutput = field(default_factory=FirstOutput)

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the modules of the model by path, without walking it."""
        return self.observer.steps.model_map.modules

    def spend(self, seconds: float) -> None:
        """Count the time of a look as spent in the open step."""
        frame = self.observer.steps.frame
        if frame is not None:
            frame.seconds += seconds
