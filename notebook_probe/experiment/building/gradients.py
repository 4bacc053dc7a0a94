"""Optimizers that are no torch optimizers: they compute gradients of a loss, and apply them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = ["AppliesGradients", "ByGradients"]

Pairs = Sequence[tuple[Tensor, Tensor]]
"""Gradients, each with its parameter."""


@runtime_checkable
class AppliesGradients(Protocol):
    """Interface of optimizers in tfutils."""

    def compute_gradients(self, loss: Tensor) -> Iterable[tuple[Tensor | None, Tensor]]: ...
    def apply_gradients(self, pairs: Pairs) -> Any: ...


class ByGradients(Optimizer):
    """A tfutils optimizer, for torch's schedulers, checkpoints and probes.

    Its ``lr``, if it has one, is that of the unit before each update; its ``state_dict``, if it
    has one, is in checkpoints.

    Parameters
    ----------
    made : AppliesGradients
    parameters : sequence of (name, Tensor)
    lr : float
    """

    def __init__(
        self, made: AppliesGradients, parameters: Sequence[tuple[str, Tensor]], lr: float
    ) -> None:
        super().__init__([*parameters], {"lr": lr})
        self.made = made

    def compute_gradients(self, loss: Tensor) -> None:
        """Add the gradients of a loss to those of earlier minibatches."""
        for gradient, parameter in self.made.compute_gradients(loss):
            if gradient is None:
                continue
            before = parameter.grad
            own = gradient.detach()
            # An optimizer that calls backward() returns `.grad` itself, which holds the sum
            # already.
            parameter.grad = own if before is None or before is gradient else before + own

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Apply the gradients."""
        (group,) = self.param_groups
        if hasattr(self.made, "lr"):
            self.made.lr = group["lr"]
        self.made.apply_gradients(
            [(one.grad, one) for one in group["params"] if one.grad is not None]
        )

    def state_dict(self) -> dict[str, Any]:
        state = getattr(self.made, "state_dict", None)
        return {**super().state_dict(), **({"made": state()} if callable(state) else {})}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = dict(state_dict)
        load = getattr(self.made, "load_state_dict", None)
        if "made" in own and callable(load):
            load(own.pop("made"))
        super().load_state_dict(own)
