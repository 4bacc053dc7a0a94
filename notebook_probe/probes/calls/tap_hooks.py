"""Hooks of a tap: they read a call at once, or have the graph read it in which it is traced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from notebook_probe.probes.inside.traced import GraphTap
from notebook_probe.probes.inside.uncompiled import run_uncompiled
from notebook_probe.probes.step.hooks import WeakHook

__all__ = ["AfterCall", "AfterRootCall", "BeforeCall", "BeforeRootCall"]


class _TapHook(WeakHook):
    """Hook that reads a call, or has a graph read it that is being traced."""

    __slots__ = ("in_graph",)

    def __init__(self, owner: object, in_graph: GraphTap) -> None:
        super().__init__(owner)
        self.in_graph = in_graph


class BeforeCall(_TapHook):
    """Hook before a call of a module."""

    __slots__ = ()

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Notify the tap; torch leaves out keywords if the hook was removed during a call."""
        if torch.compiler.is_compiling():
            self.in_graph.before(module, args, kwargs)
        elif (tap := self.owner()) is not None:
            tap.before(module, args, kwargs)


class AfterCall(_TapHook):
    """Hook after a call of a module."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_compiling():
            self.in_graph.after(module, output)
        elif (tap := self.owner()) is not None:
            tap.after(module, output)


class BeforeRootCall(BeforeCall):
    """Hook of the model itself, which sees nothing of a compiled call: no step begins there."""

    __slots__ = ()

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        if not torch.compiler.is_compiling() and (tap := self.owner()) is not None:
            tap.before(module, args, kwargs)


class AfterRootCall(AfterCall):
    """Hook of the model itself, as before its call."""

    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if not torch.compiler.is_compiling() and (tap := self.owner()) is not None:
            tap.after(module, output)


# So the hooks of a module that is compiled alone run as those of any other.
run_uncompiled(*(kind.__call__ for kind in (BeforeCall, AfterCall, BeforeRootCall, AfterRootCall)))
