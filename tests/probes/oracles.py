"""Twins that nobody watches, and what they note of themselves.

A model says what it computes with ``self.note("name", tensor)``; only a twin with `Notes` keeps it.
Gradients come from ``retain_grad`` and weights from the twin's own optimizer, so no number here
has gone through a module hook.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from notebook_probe.quantities.reduce.stat import Number, Stat, root
from tests.models import sgd
from tests.probes.parity import differing, everything
from tests.run.oracle import Numbers, float64, norm_of

__all__ = [
    "Loop",
    "Noted",
    "Notes",
    "Scaled",
    "column",
    "float64",
    "grad_input_size",
    "grad_mean",
    "grad_raw_size",
    "norm_of",
    "notes_of",
    "plain_loop",
    "same_column",
    "train_alike",
    "update_size",
]

Loop: TypeAlias = Callable[[Any, Optimizer], object]


class Notes:
    """What a twin noted, in the order it happened.

    Attributes
    ----------
    weights, gradients, updates : list of dict
        One dict per optimizer step: parameter -> float64 array.
    """

    def __init__(self) -> None:
        self.weights: list[dict[str, Numbers]] = []
        self.gradients: list[dict[str, Numbers]] = []
        self.updates: list[dict[str, Numbers]] = []
        self._values: dict[str, list[Tensor]] = defaultdict(list)
        self._tensors: dict[str, list[Tensor]] = defaultdict(list)

    def keep(self, name: str, tensor: Tensor) -> None:
        self._values[name].append(tensor.detach().clone())
        self._tensors[name].append(tensor)
        if tensor.requires_grad:
            tensor.retain_grad()

    def values(self, name: str) -> list[Numbers]:
        """What was noted under a name, call by call."""
        return [float64(value) for value in self._values[name]]

    def gradients_of(self, name: str) -> list[Numbers]:
        """The gradients that reached it, call by call; a call that none reached is left out."""
        found = (tensor.grad for tensor in self._tensors[name])
        return [float64(gradient) for gradient in found if gradient is not None]

    def follow(self, model: nn.Module, optimizer: Optimizer) -> None:
        """Keep weights and gradients before each step of this very optimizer, and the change."""

        def weights() -> dict[str, Numbers]:
            return {name: float64(value) for name, value in model.named_parameters()}

        def before(*_: Any) -> None:
            self.weights.append(weights())
            self.gradients.append(
                {
                    name: float64(value.grad)
                    for name, value in model.named_parameters()
                    if value.grad is not None
                }
            )

        def after(*_: Any) -> None:
            old = self.weights[-1]
            with np.errstate(invalid="ignore"):  # a weight that has become infinite
                self.updates.append({name: value - old[name] for name, value in weights().items()})

        optimizer.register_step_pre_hook(before)
        optimizer.register_step_post_hook(after)


class Noted(nn.Module):
    """A model that notes what it computes, when it is asked to."""

    notes: Notes | None = None

    def note(self, name: str, tensor: Tensor) -> Tensor:
        if self.notes is not None and self.training and torch.is_grad_enabled():
            self.notes.keep(name, tensor)
        return tensor


class Scaled(Noted):
    """Its first part returns the input times a number, at any precision."""

    class Part(nn.Module):
        def __init__(self, outer: Noted, factor: float) -> None:
            super().__init__()
            self._outer, self._factor = [outer], factor

        def forward(self, x: Tensor) -> Tensor:
            return self._outer[0].note("output", x * self._factor)

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.part, self.linear = Scaled.Part(self, factor), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.part(x) / self.part._factor)


class OneLayer(Noted):
    """A layer whose output is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.note("output", self.part(x))


def notes_of(model: Noted) -> Notes:
    """Make a twin note what it does from now on."""
    model.notes = Notes()
    return model.notes


def plain_loop(batch: Callable[[int], Tensor], steps: Iterable[int]) -> Loop:
    """Bring the mean square of the output down, one batch per step."""

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in steps:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    return loop


def train_alike(
    loop: Loop, twin: nn.Module, watched: nn.Module, optimizer_of: Callable[..., Optimizer] = sgd
) -> None:
    """Train both by the same loop from the same random state: they end equal bit for bit."""
    left = []
    for model in (twin, watched):
        optimizer = optimizer_of(model)
        notes = getattr(model, "notes", None)
        if model is twin and notes is not None:
            notes.follow(twin, optimizer)
        torch.manual_seed(7)
        loop(model, optimizer)
        left.append(everything(model, [optimizer]))
    assert differing(*left) == []


def column(run: nbp.Run, module: str, quantity: str) -> list[float]:
    """A quantity at every recorded step; NaN is a gap."""
    values: list[float] = run.data[quantity].sel(module=module).values.tolist()
    return values


def same_column(
    run: nbp.Run, module: str, quantity: str, wanted: list[float], rtol: float = 1e-5
) -> None:
    """Compare a quantity at every recorded step with what the oracle says; NaN is a gap."""
    np.testing.assert_allclose(
        column(run, module, quantity), wanted, rtol=rtol, atol=1e-9, err_msg=f"{quantity} {module}"
    )


def grad_input_size(grad_input_sumsq: Stat) -> Number:
    """Norm of what the module sends to its inputs."""
    return root(grad_input_sumsq.sumsq)


def grad_raw_size(grad_raw_sumsq: Stat) -> Number:
    """Norm of the gradient as accumulated, before clipping."""
    return root(grad_raw_sumsq.sumsq)


def update_size(update_sumsq: Stat) -> Number:
    """Norm of what the step changed."""
    return root(update_sumsq.sumsq)


def grad_mean(grad_moments: Stat) -> Number:
    """Mean over all elements of the gradient."""
    return grad_moments.mean if grad_moments.n else math.nan
