"""Hooks on tensors and nodes of the graph that receive gradients.

Some end with the graph and some with a handle. `await_return` is for passes that reach a call
through a derivative of it, and not through its output: if a loss is made of derivatives, as in a
physics-informed network or a gradient penalty, a backward pass follows the gradients that another
pass has made with ``create_graph=True``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import Node
from torch.utils.hooks import RemovableHandle, unserializable_hook

from notebook_probe.quantities.reduce.arrays import local

__all__ = [
    "await_return",
    "begins_with_zeros",
    "hook_accumulation",
    "hook_in_graph",
    "hook_leaf",
    "was_zeroed",
]

Read: TypeAlias = Callable[[Tensor], None]

SAMPLE = 4096
"""Elements of a gradient that are looked at, where one that is not 0 is enough."""

MOST_NODES = 32
"""The first gradient that depends on a weight or an activation is mostly that of the output."""

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
    with suppress(Exception):  # it may be empty, or of a type that numpy does not have
        if here.numpy().item(0) != 0:  # nearly always, at a tenth of the cost of the rest
            return False
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


def await_return(come: Callable[[], object]) -> None:
    """Call ``come`` once a backward pass reaches the result of the node that runs now.

    If that is constant, as in a view of the output, it is the result of the nodes behind it.
    """
    with suppress(Exception):  # whatever a node is, its pass runs
        node = torch._C._current_autograd_node()
        if node is not None:
            _Made(come, MOST_NODES).of(node)


class _Made:
    """Hooks on the gradients that nodes compute."""

    def __init__(self, come: Callable[[], object], n_left: int) -> None:
        self._come, self._n_left = come, n_left

    def of(self, node: Node) -> None:
        """Put a hook on a node, up to the limit."""
        if self._n_left <= 0:
            return
        self._n_left -= 1

        def made(gradients: Any, _: Any) -> None:
            handle.remove()
            with suppress(Exception):  # as above
                self._look(gradients)

        handle = node.register_hook(made)

    def _look(self, gradients: Sequence[Any]) -> None:
        node = torch._C._current_autograd_node()  # which a hook that holds it would keep
        with_graph = [g for g in gradients if isinstance(g, Tensor) and g.requires_grad]
        for gradient in with_graph:
            gradient.register_hook(self._returns)
        for following, _ in () if with_graph or node is None else node.next_functions:
            if following is not None:
                self.of(following)

    def _returns(self, _: Tensor) -> None:
        if not torch.compiler.is_compiling():
            self._come()
