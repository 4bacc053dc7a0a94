"""Parameters that all facts share: the model, its observer, and where findings go."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from notebook_probe.probes.observer import Observer
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.later import Later

__all__ = ["FactContext", "FirstOutput", "GivenTokens", "root_mean_square"]

MOST_TABLES = 3


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


class GivenTokens:
    """Tables of whole numbers that the first training call of a step is given.

    Attributes
    ----------
    is_wanted : bool
        The loss of the step will be read.
    """

    def __init__(self) -> None:
        self._tables: list[Tensor] = []
        self._takes_any = self.is_wanted = False

    def keep(self, given: Iterable[Tensor]) -> None:
        """Keep references to them until the loss is read, or until the next call."""
        plain = [one.detach() for one in given if type(one) is Tensor]
        whole = [one for one in plain if _is_of_whole_numbers(one)]
        self._takes_any |= bool(whole)
        self._tables = [one for one in whole if one.ndim == 2][:MOST_TABLES]

    def take(self) -> tuple[list[Tensor], bool]:
        """Return the tables, once, and whether the model is given any whole numbers."""
        tables, self._tables = self._tables, []
        return tables, self._takes_any


def _is_of_whole_numbers(tensor: Tensor) -> bool:
    is_number = not (tensor.is_floating_point() or tensor.is_complex())
    return is_number and tensor.dtype is not torch.bool and not tensor.is_meta


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
    given_tokens : GivenTokens
    """

    model: weakref.ref[nn.Module]
    observer: Observer
    findings: FactFindings
    later: Later
    first_output: FirstOutput = field(default_factory=FirstOutput)
    given_tokens: GivenTokens = field(default_factory=GivenTokens)

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the modules of the model by path, without walking it."""
        return self.observer.steps.model_map.modules

    def spend(self, seconds: float) -> None:
        """Count the time of a look as spent in the open step."""
        frame = self.observer.steps.frame
        if frame is not None:
            frame.seconds += seconds
