"""Hooks as a careful user writes them: reduced at once, a tensor hook for the output's gradient.

The cheap and safe ways throughout (no full backward hook, no tensor kept), so that what is
compared is a tool and not a slip.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.probe_sets import Probes, places

__all__ = ["QUANTITIES", "Hooks"]

QUANTITIES = ("weight_norm", "grad_norm", "input_mean", "input_norm", "output_grad_norm")


class Hooks:
    """Measures P1 and P2 of a model into ``values``, by ``quantity/module``."""

    def __init__(self, model: nn.Module, probes: Probes) -> None:
        self.values: dict[str, float] = {}
        self._weighted = places(model, probes, "weight_norm")
        self._handles = [
            module.register_forward_hook(_Leaf(path, self.values))
            for path, module in places(model, probes, "input_norm").items()
        ]

    @torch.no_grad()
    def read_parameters(self) -> None:
        """After the backward, before the optimizer."""
        for path, module in self._weighted.items():
            weight = module.get_parameter("weight")
            self.values[f"weight_norm/{path}"] = weight.norm().item()
            if weight.grad is not None:
                self.values[f"grad_norm/{path}"] = weight.grad.norm().item()

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class _Leaf:
    """The forward hook of one module."""

    def __init__(self, path: str, values: dict[str, float]) -> None:
        self._path, self._values = path, values

    def __call__(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        given = args[0].detach()
        self._values[f"input_mean/{self._path}"] = given.mean().item()
        self._values[f"input_norm/{self._path}"] = given.norm().item()
        output.register_hook(self._backward)

    def _backward(self, grad: Tensor) -> None:
        self._values[f"output_grad_norm/{self._path}"] = grad.norm().item()
