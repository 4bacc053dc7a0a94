"""Hooks on a tensor that hear of its gradient, and end with the graph or with a handle."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from torch import Tensor
from torch.utils.hooks import RemovableHandle, unserializable_hook

__all__ = ["hook_in_graph", "hook_leaf"]

Read: TypeAlias = Callable[[Tensor], None]

OWN = -1
"""The number of our hook among those of a tensor; torch's begin at 0."""


def hook_in_graph(tensor: Tensor, read: Read) -> None:
    """Have the gradient of a tensor read that a graph has made, and that ends with it.

    Most of what `Tensor.register_hook` takes goes into a handle, which nobody needs here.
    """
    node = tensor.grad_fn
    if node is None or tensor._backward_hooks is not None:
        tensor.register_hook(read)
        return
    hooks = tensor._backward_hooks = OrderedDict()
    node._register_hook_dict(tensor)
    hooks[OWN] = read


def hook_leaf(tensor: Tensor, read: Read) -> RemovableHandle:
    """Have the gradient of a leaf read, until the handle is removed.

    torch does not say of the hook, each time its tensor is saved, that it is not.
    """
    hook: Read = unserializable_hook(partial(read))
    return tensor.register_hook(hook)
