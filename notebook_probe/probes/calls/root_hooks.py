"""Hooks at the root of a model, which tell where its outermost calls begin and end."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import nn

from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced

__all__ = ["hook_root"]


class RootListener(Protocol):
    def watches(self, module: nn.Module) -> bool: ...
    def enter(self, root: nn.Module) -> None: ...
    def leave(self, output: object) -> None: ...


def hook_root(model: nn.Module, observer: RootListener) -> list[UncopiedHandle]:
    """Tell ``observer``, which is held weakly, of each call of ``model`` itself."""
    handles = (
        model.register_forward_pre_hook(_Enter(observer)),
        model.register_forward_hook(_Leave(observer), always_call=True),
    )
    return [UncopiedHandle(handle) for handle in handles]


class _Root(WeakHook):
    __slots__ = ()

    def observer(self, module: nn.Module) -> RootListener | None:
        """Who is to be told of a call of ``module``; None of a copy, or of a call of our own."""
        if torch.compiler.is_compiling() or (observer := self.owner()) is None:
            return None
        return observer if observer.watches(module) and not is_traced() else None


class _Enter(_Root):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any) -> None:
        if (observer := self.observer(module)) is not None:
            observer.enter(module)


class _Leave(_Root):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        if (observer := self.observer(module)) is not None:
            observer.leave(output)
