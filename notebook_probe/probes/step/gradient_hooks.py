"""Hooks on a tensor that hear of its gradient, and end with the graph or with a handle."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor
from torch.utils.hooks import RemovableHandle, unserializable_hook

from notebook_probe.quantities.reduce.arrays import local

__all__ = ["begins_with_zeros", "hook_accumulation", "hook_in_graph", "hook_leaf", "was_zeroed"]

Read: TypeAlias = Callable[[Tensor], None]

SAMPLE = 4096
"""Elements of a gradient that are looked at, where one that is not 0 is enough."""

OWN = -1
"""Number of our hook among those of a tensor; torch's begin at 0."""


def was_zeroed(gradient: Tensor, version: int) -> bool:
    """Return whether a gradient was cleared in place since this version.

    Its values are read only where it was written to.
    """
    if gradient._version == version or gradient.is_sparse:
        return False
    here = local(gradient)
    return here.numel() > 0 and not bool(here.any())


def begins_with_zeros(gradient: Tensor) -> bool:
    """Return whether it may be all zeros; False on an accelerator, without waiting."""
    if not gradient.is_cpu or gradient.is_sparse:
        return False
    here = gradient if type(gradient) is Tensor else local(gradient)
    return not bool((here.view(-1)[:SAMPLE] if here.is_contiguous() else here).any())


def hook_in_graph(tensor: Tensor, read: Read) -> None:
    """Put a hook on the gradient of a tensor that a graph has made, and that ends with it.

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
    """Put a hook on the gradient of a leaf, until the handle is removed.

    torch does not say of the hook, each time its tensor is saved, that it is not.
    """
    hook: Read = unserializable_hook(partial(read))
    return tensor.register_hook(hook)


def hook_accumulation(
    parameter: Tensor, hook: Callable[[Tensor], None], is_swapped: bool = False
) -> RemovableHandle:
    """Call ``hook`` after each accumulation into ``parameter.grad``, before all other hooks.

    An optimizer may step, and clear the gradient, in one of its hooks.

    Parameters
    ----------
    parameter : Tensor
        A leaf that requires a gradient.
    hook : callable
    is_swapped : bool
        torch has swapped the parameter's contents. Then it calls none of the hooks that the
        parameter still lists: https://github.com/pytorch/pytorch/blob/main/torch/utils/__init__.py
    """
    hooks: Any = parameter._post_accumulate_grad_hooks
    if is_swapped or not hooks:  # those that were left by a swap are empty, mostly
        hooks = parameter._post_accumulate_grad_hooks = OrderedDict()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    hooks.move_to_end(handle.id, last=False)
    return handle
