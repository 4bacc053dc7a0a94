"""Parameters that all facts share: the model, its observer, and where findings go."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from notebook_probe.probes.observer import Observer
from notebook_probe.run.facts.fact import FactFindings
from notebook_probe.run.facts.later import Later

__all__ = ["FactContext", "FirstOutput", "GivenTokens", "TokenTables", "root_mean_square"]

MOST_TABLES, MOST_LOOKUPS = 3, 8


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
        self._looked_up: list[Tensor] = []
        self._n_samples = 0
        self._takes_any = self._is_alone = self.is_wanted = False

    def keep(self, given: Sequence[Tensor]) -> None:
        """Keep references to them until the loss is read, or until the next call."""
        whole = [one.detach() for one in given if _is_of_whole_numbers(one)]
        self._takes_any |= bool(whole)
        self._tables = [one for one in whole if one.ndim == 2][:MOST_TABLES]
        self._looked_up, self._is_alone = [], len(given) == 1
        is_known = bool(given) and type(given[0]) is Tensor  # as below
        self._n_samples = len(given[0]) if is_known and given[0].ndim else 0

    def looked_up(self, given: Iterable[Tensor]) -> None:
        """Keep references to tokens that a layer looks up; one row alone is of positions."""
        tables = [one.detach() for one in given if _is_of_whole_numbers(one)]
        self._looked_up += [one for one in tables if one.ndim == 2 and len(one) > 1]
        self._looked_up = self._looked_up[:MOST_LOOKUPS]

    def take(self) -> TokenTables:
        """Return what is known of them, once."""
        tables, self._tables = self._tables, []
        looked_up, self._looked_up = self._looked_up, []
        are_inputs = bool(looked_up) or self._is_alone
        return TokenTables(looked_up or tables, are_inputs, self._takes_any, self._n_samples)


@dataclass(frozen=True)
class TokenTables:
    """Tables of tokens of one call.

    Attributes
    ----------
    tables : list of Tensor
        Tokens that are looked up; if none are, all tables that the model was given.
    are_inputs : bool
        The model makes its output of them; else one may be the labels, for a loss that the model
        computes itself.
    takes_any : bool
        The model is given whole numbers of any shape.
    n_samples : int
        Length of the first tensor that it is given.
    """

    tables: list[Tensor]
    are_inputs: bool
    takes_any: bool
    n_samples: int


def _is_of_whole_numbers(tensor: Tensor) -> bool:
    # By its exact type: a tensor of another class would notice each question.
    if type(tensor) is not Tensor or tensor.is_floating_point() or tensor.is_complex():
        return False
    return tensor.dtype is not torch.bool and not tensor.is_meta


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
