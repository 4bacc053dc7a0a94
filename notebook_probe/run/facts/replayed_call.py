"""A training call that is made again, to learn which module gave the first NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import NotApplicableError
from notebook_probe.graph.undisturbed import undisturbed
from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.loss.kept_calls import KeptCall
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["ReplayedCall", "replayed", "share_of_nan"]


@dataclass(slots=True)
class ReplayedCall:
    """Findings of a call that was made again.

    Attributes
    ----------
    paths : list of str
        Paths of the modules that were called, in the order in which they returned.
    origin : str or None
        Path of the first module with an output that is not finite; None if all are finite.
    fraction : float
        Fraction of numbers in these outputs that are not finite.
    n_finite : int
        Number of modules that returned finite outputs before it.
    largest : float
        Largest absolute value of the model's output.
    """

    paths: list[str] = field(default_factory=list)
    origin: str | None = None
    fraction: float = 0.0
    n_finite: int = 0
    largest: float = 0.0

    def returned(self, path: str, output: Any) -> None:
        """Note the output of a module."""
        if path not in self.paths:
            self.paths.append(path)
        if self.origin is not None:
            return
        fraction = _fraction(tensors_of(output))
        if fraction:
            self.origin, self.fraction = path, fraction
        else:
            self.n_finite += 1


def replayed(model: nn.Module, call: KeptCall, model_map: ModelMap) -> ReplayedCall:
    """Make a call again, in the state in which it began; it leaves no trace.

    Raises
    ------
    NotApplicableError
        The model cannot be called by this process alone.
    Exception
        Any error of the model.
    """
    model, found = unwrap(model), ReplayedCall()
    modules = {id(module): path for path, module in [*model_map.modules.items()][::-1]}

    def note(module: nn.Module, args: Any, output: Any) -> None:
        found.returned(modules[id(module)], output)

    with undisturbed(model, tensors_of([call.args, call.kwargs])):
        for reference, name, value in call.attributes:
            if (module := reference()) is not None:
                vars(module)[name] = value
        for module in model.modules():
            if id(module) in modules:
                module.register_forward_hook(note)  # taken off with the end of the context
        generator = torch.default_generator
        before = call.random if call.random is not None else generator.get_state()
        generator.set_state(before)
        with torch.autocast("cpu", dtype=call.autocast, enabled=call.autocast is not None):
            output = call.make_again(model)
        if call.random is None and not torch.equal(before, generator.get_state()):
            raise NotApplicableError("it draws random numbers, which it did not in its first calls")
    found.largest = max((float(one.abs().max()) for one in _numbers(output)), default=0.0)
    return found


def share_of_nan(values: Any) -> float:
    """Return the fraction of numbers that are NaN or above any; masks are full of -inf.

    Examples
    --------
    >>> share_of_nan([torch.tensor([1.0, math.nan]), torch.tensor([-math.inf, 0.0])])
    0.25
    """
    tensors = [one for one in tensors_of(values) if one.is_floating_point()]
    n_bad = sum(int((one.isnan() | (one == math.inf)).sum()) for one in tensors)
    return n_bad / max(1, sum(one.numel() for one in tensors))


def _fraction(tensors: Sequence[Tensor]) -> float:
    numbers = _numbers(tensors)
    n_bad = sum(one.numel() - int(one.isfinite().sum()) for one in numbers)
    return n_bad / max(1, sum(one.numel() for one in numbers))


def _numbers(value: Any) -> list[Tensor]:
    """Return the tensors of real or complex numbers in a value, but those without elements."""
    tensors = [one for one in tensors_of(value) if one.numel()]
    return [one for one in tensors if one.is_floating_point() or one.is_complex()]
