"""Passes that come back to a call by way of a derivative of it, and leave out its output.

Where a loss is made of derivatives, as of a physics-informed network or a gradient penalty, a pass
goes back through the gradients that another pass has made with ``create_graph=True``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

__all__ = ["await_return"]

MOST_NODES = 32
"""The first gradient that depends on a weight or an activation is mostly that of the output."""


def await_return(come: Callable[[], object]) -> None:
    """Call ``come`` once a pass goes back through what the node makes that runs now.

    Where that is constant, as of a view of the output, it is what the nodes behind it make.
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
