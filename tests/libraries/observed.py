"""What a `Witness` saw in one step, and what quantities come of it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.run.oracle import Numbers, norm, numbers

__all__ = ["Call", "Step", "combined", "versions"]

Values: TypeAlias = dict[str, float]
"""Path of a module or parameter -> value."""

Seen: TypeAlias = defaultdict[str, list[Numbers]]


@dataclass
class Call:
    """A call of a module: its tensors that have a gradient, each with its version then."""

    path: str
    inputs: dict[Tensor, int]
    outputs: dict[Tensor, int]
    gradients: list[Tensor | None] = field(default_factory=list)
    """Of the outputs, once they are known."""

    @property
    def overwritten(self) -> bool:
        """Autograd has no gradient of what a tensor was before it was changed in place."""
        versions = (*self.inputs.items(), *self.outputs.items())
        return any(tensor._version != version for tensor, version in versions)

    @property
    def is_simple(self) -> bool:
        return len(self.inputs) == len(self.outputs) == 1

    def entry_gradients(self) -> list[Numbers]:
        """What the module sends to its input, given the gradient of its output."""
        (taken,), (given,), (gradient,) = self.inputs, self.outputs, self.gradients
        if gradient is None:
            return []
        (sent,) = torch.autograd.grad(given, taken, gradient, retain_graph=True, allow_unused=True)
        return [] if sent is None else [numbers([sent])]


@dataclass
class Step:
    """All that happened up to one update."""

    modules: dict[str, Values] = field(default_factory=dict)
    """Quantity -> path of a module -> what must be recorded."""
    parameters: dict[str, Values] = field(default_factory=dict)
    """Quantity -> path of a parameter -> what must be recorded."""
    n_calls: Counter[str] = field(default_factory=Counter)
    calls: list[Call] = field(default_factory=list)
    inputs: Seen = field(default_factory=lambda: defaultdict(list))
    outputs: Seen = field(default_factory=lambda: defaultdict(list))

    def read_output_gradients(self) -> None:
        """Copies: a later backward through the same graph adds to what autograd retained."""
        found: Seen = defaultdict(list)
        overwritten = {call.path for call in self.calls if call.overwritten}
        for call in self.calls:
            kept = (one.grad for one in call.outputs)
            call.gradients = [None if one is None else one.clone() for one in kept]
            if call.path not in overwritten:
                found[call.path] += [numbers([one]) for one in call.gradients if one is not None]
        self.modules["output_grad_norm"] = _norms(found)

    def read_input_gradients(self) -> None:
        """Of modules with one input and one output: others may come of each other."""
        found: Seen = defaultdict(list)
        left_out = {call.path for call in self.calls if not call.is_simple or call.overwritten}
        for call in self.calls:
            if call.path not in left_out:
                found[call.path] += call.entry_gradients()
        self.modules["input_grad_norm"] = _norms(found)

    def end(self, model: nn.Module, before: Mapping[str, Numbers], optimizer: Optimizer) -> None:
        """Work out the values; the gradients are those that the optimizer has just used."""
        self.n_calls.update(call.path for call in self.calls)
        self.modules["input_norm"] = _norms(self.inputs)
        self.modules["output_norm"] = _norms(self.outputs)
        self.calls, self.inputs, self.outputs = [], defaultdict(list), defaultdict(list)
        sizes = {name: norm(weight) for name, weight in before.items()}
        trained = {n: v for n, v in model.named_parameters() if v.grad is not None}
        gradients = [value.grad for value in trained.values() if value.grad is not None]
        changes = {name: norm(numbers([v]) - before[name]) for name, v in trained.items()}
        self.parameters = {
            "weight_norm": sizes,
            "grad_norm": {n: norm(numbers([g])) for n, g in zip(trained, gradients, strict=True)},
            "update_ratio": {name: _ratio(size, sizes[name]) for name, size in changes.items()},
            "own_update": changes,
            "own_momentum": {
                name: norm(numbers([optimizer.state[value]["exp_avg"]]))
                for name, value in trained.items()
            },
        }


def versions(tensors: Iterable[Tensor]) -> dict[Tensor, int]:
    """Those that have a gradient, and how often each has been changed in place."""
    return {tensor: tensor._version for tensor in tensors if tensor.requires_grad}


def combined(parts: Iterable[Numbers]) -> float:
    """Size of everything together."""
    return float(sum(norm(part) ** 2 for part in parts) ** 0.5)


def _ratio(change: float, size: float) -> float:
    """Of a weight that is zero no share can change."""
    return change / size if size else math.nan


def _norms(of: Mapping[str, list[Numbers]]) -> Values:
    return {path: combined(parts) for path, parts in of.items() if parts}
