"""Recording of module calls and outputs while a graph is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from notebook_probe.graph.draft import Given, described

__all__ = ["Heard", "listening"]


class Heard:
    """Recorded calls.

    Attributes
    ----------
    calls : dict of str to int
        Number of calls of each module, by path.
    given : dict of str to (shape, dtype)
        Last output of each module.
    stack : list of str
        Paths of the open calls, the innermost last.
    on_output : callable, optional
        Called with each module and its inputs and outputs, before its call ends.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.given: dict[str, Given] = {}
        self.stack: list[str] = []
        self.on_output: Callable[[nn.Module, Any, Any], None] | None = None

    def forget_calls(self) -> None:
        """Forget the calls before the model is called again."""
        self.calls.clear()
        self.stack.clear()

    def enter(self, path: str) -> None:
        self.calls[path] = self.calls.get(path, 0) + 1
        self.stack.append(path)

    def leave(self, path: str, module: nn.Module, args: Any, output: Any) -> None:
        with torch._C.DisableTorchFunction():  # looking at tensors is no operator
            self.given[path] = described(output)
            if self.on_output is not None:
                self.on_output(module, args, output)
        self.stack.pop()


@contextmanager
def listening(modules: Mapping[str, nn.Module], heard: Heard) -> Iterator[None]:
    """Record the calls of these modules inside the context."""
    handles = []
    for path, module in modules.items():

        def enter(module: nn.Module, args: Any, path: str = path) -> None:
            heard.enter(path)

        def leave(module: nn.Module, args: Any, output: Any, path: str = path) -> None:
            heard.leave(path, module, args, output)

        # Not with always_call: a call that raises ends the listening, and the next forgets it.
        handles.append(module.register_forward_pre_hook(enter))
        handles.append(module.register_forward_hook(leave))
    heard.forget_calls()
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
