"""Values of the modules without children, by plain hooks and in float64."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

__all__ = ["Leaves", "Values", "tensors_in"]

Values: TypeAlias = "dict[tuple[str, str], float]"
"""By quantity and path."""


@dataclass
class Moments:
    """Number, mean and sum of squared deviations of some elements."""

    n: int = 0
    mean: float = 0.0
    spread: float = 0.0

    def take(self, values: Tensor) -> None:
        n = values.numel()
        if not n:
            return
        mean = float(values.mean())
        spread = float((values - mean).square().sum())
        shift, total = mean - self.mean, self.n + n
        self.spread += spread + shift * shift * self.n * n / total
        self.mean += shift * n / total
        self.n = total


class Leaves:
    """Hooks on the modules without children, whose values of a step `of_step` returns."""

    def __init__(self, model: nn.Module) -> None:
        named = [*model.named_modules()]
        self.modules = {path: module for path, module in named if not [*module.children()]}
        self._moments: dict[str, Moments] = defaultdict(Moments)
        self._n_calls: dict[str, int] = defaultdict(int)
        self._strange: set[str] = set()
        for path, module in self.modules.items():
            module.register_forward_hook(self._hook(path))

    def _hook(self, path: str) -> Any:
        def keep(module: nn.Module, args: Any, output: Any) -> None:
            self._n_calls[path] += 1
            tensors = [*tensors_in(output)]
            if any(one.is_complex() for one in tensors):
                self._strange.add(path)
                return
            floats = [one for one in tensors if one.is_floating_point()]
            for one in floats or tensors:
                self._moments[path].take(one.detach().double())

        return keep

    def of_step(self) -> Values:
        """Return the values of the step whose backward is over, before its update."""
        found: Values = {}
        for path, module in self.modules.items():
            place = path or "(root)"
            if self._n_calls[path]:
                found["calls", place] = self._n_calls[path]
            moments = self._moments[path]
            if moments.n and path not in self._strange:
                found["output_mean", place] = moments.mean
                if moments.n > 1:
                    found["output_std", place] = math.sqrt(moments.spread / (moments.n - 1))
            found |= _of_parameters(module, place)
        self._moments.clear()
        self._n_calls.clear()
        return found


def _of_parameters(module: nn.Module, place: str) -> Values:
    own = {name: value for name, value in module._parameters.items() if value is not None}
    found: Values = {}
    weights = [own["weight"]] if "weight" in own else [*own.values()]
    if weights and not any(name.startswith("weight_") for name in own):
        found["weight_norm", place] = _norm(weights)
    gradients = [value.grad for value in own.values() if value.grad is not None]
    if gradients:
        found["grad_norm", place] = _norm(gradients)
    return found


def _norm(tensors: list[Any]) -> float:
    with torch.no_grad():
        return math.sqrt(sum(float(one.detach().double().square().sum()) for one in tensors))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in what a module returns."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from tensors_in([*value.values()])
    elif isinstance(value, tuple | list):
        for one in value:
            yield from tensors_in(one)
