"""Hooks at the root of a model, which tell where its outermost calls begin and end."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import nn
from torch._C import _functorch

from notebook_probe.probes.inside.uncompiled import run_uncompiled
from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced, note_capture

__all__ = ["hook_root"]


# At every step: what `is_traced` finds mostly, without its call.
_modes, _tracing, _cuda = (
    torch._C._len_torch_dispatch_stack,
    torch._C._get_tracing_state,
    torch.cuda,
)
_level = _functorch.maybe_current_level


class RootListener(Protocol):
    def enter(self, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None: ...
    def leave(self, output: object) -> None: ...


def hook_root(model: nn.Module, observer: RootListener) -> list[UncopiedHandle]:
    """Notify ``observer``, which is held weakly, of each call of ``model`` itself."""
    handles = (
        model.register_forward_pre_hook(_Enter(observer, model), with_kwargs=True),
        model.register_forward_hook(_Leave(observer, model), always_call=True),
    )
    return [UncopiedHandle(handle) for handle in handles]


class _Root(WeakHook):
    """Hook for the root alone: a shallow copy of it has the same hooks."""

    __slots__ = ("root",)

    def __init__(self, owner: RootListener, root: nn.Module) -> None:
        super().__init__(owner)
        self.root = weakref.ref(root)


class _Enter(_Root):
    __slots__ = ()

    def __call__(
        self, module: nn.Module, args: Any, kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Notify the observer; torch leaves out keywords if the hook was removed during a call."""
        if torch.compiler.is_dynamo_compiling() or self.root() is not module:
            return
        if (_modes() or _level() is not None or _tracing() is not None or _cuda._initialized) and (
            is_traced()
        ):
            note_capture(module)
        elif (observer := self.owner()) is not None:
            observer.enter(module, args, kwargs)


class _Leave(_Root):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_dynamo_compiling() or self.root() is not module:
            return
        if (_modes() or _level() is not None or _tracing() is not None or _cuda._initialized) and (
            is_traced()
        ):
            return
        if (observer := self.owner()) is not None:
            observer.leave(output)


run_uncompiled(_Enter.__call__, _Leave.__call__)
