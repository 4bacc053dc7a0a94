"""The tensors of a batch: what the model was called with, and the targets of its loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.probes.loss.kept_calls import KeptCall
from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.run.looks.kept_tensor import TENSORS

__all__ = ["batch_tensors"]

INPUT, TARGET = "input", "target"
MOST_LINKS = 8
"""Nodes between a loss and the one that has saved the targets."""


def batch_tensors(call: KeptCall, loss: Tensor | None = None) -> dict[str, Tensor]:
    """Return the tensors of a call, by the names of its keywords, and the targets of a loss.

    A keyword that is called as a tensor of modules gets a line below behind its name.
    """
    target = None if loss is None else _target(loss.grad_fn)
    named = dict(_arguments(call))
    return named if target is None else {**named, TARGET: target}


def _arguments(call: KeptCall) -> Iterator[tuple[str, Tensor]]:
    given = [*((INPUT, one) for one in call.args), *call.kwargs.items()]
    n_of: dict[str, int] = {}
    for argument, value in given:
        name = f"{argument}_" if argument in TENSORS and argument != INPUT else argument
        for tensor in tensors_of(value):
            n_of[name] = n_of.get(name, 0) + 1
            yield name if n_of[name] == 1 else f"{name}_{n_of[name]}", tensor


def _target(node: Node | None) -> Tensor | None:
    """Return the targets that a loss has saved, before its backward; None if it has saved none."""
    for _ in range(MOST_LINKS):
        if node is None:
            return None
        saved: Any = getattr(node, "_saved_target", None)
        if isinstance(saved, Tensor):
            return saved
        following = [one for one, _ in node.next_functions if one is not None]
        node = following[0] if len(following) == 1 else None
    return None
