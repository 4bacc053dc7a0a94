"""Hooks that are on a module only while they are wanted, and stay silent in its copies."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

__all__ = ["Inert", "Switch", "WeakHook"]


class Inert:
    """A hook that outlives its owner: copies, pickles and forks of a model must stay silent."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None


class WeakHook:
    """A hook that holds its owner weakly, and copies or pickles as an inert one."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = weakref.ref(owner)

    def __call__(self, module: nn.Module, *call: Any) -> None:
        if torch.compiler.is_compiling():  # folds away in a compiled region
            return
        owner = self._owner()
        if owner is not None:
            self.tell(owner, module, call)

    def tell(self, owner: Any, module: nn.Module, call: tuple[Any, ...]) -> None:
        """Pass the call on."""
        raise NotImplementedError

    def __deepcopy__(self, memo: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()


class Switch:
    """One hook that is put on and taken off many times, at the cost of a dict entry.

    A hook that has nothing to do would cost its module a microsecond per call.

    Parameters
    ----------
    hook : callable
    module : nn.Module
        Held weakly.
    register : callable
        ``register(module, hook)`` puts it on for the first time.
    """

    __slots__ = ("_handle", "_hook", "_is_on", "_module", "_register")

    def __init__(
        self,
        hook: Callable[..., Any],
        module: nn.Module,
        register: Callable[[nn.Module, Callable[..., Any]], RemovableHandle],
    ) -> None:
        self._hook, self._module, self._register = hook, weakref.ref(module), register
        self._handle: RemovableHandle | None = None
        self._is_on = False

    def set(self, on: bool) -> None:
        """Put the hook on, or take it off."""
        if on == self._is_on:
            return
        self._is_on = on
        if self._handle is None:
            module = self._module()
            self._handle = self._register(module, self._hook) if module is not None else None
            return
        hooks = self._handle.hooks_dict_ref()
        if hooks is None:  # the module is gone
            return
        if on:
            hooks[self._handle.id] = self._hook
        else:
            hooks.pop(self._handle.id, None)

    @property
    def was_cleared(self) -> bool:
        """Somebody else took the hook off."""
        if not self._is_on or self._handle is None:
            return False
        hooks = self._handle.hooks_dict_ref()
        return hooks is None or self._handle.id not in hooks

    def remove(self) -> None:
        """Take the hook off for good, with all that torch keeps of it."""
        if self._handle is not None:
            self._handle.remove()
        self._handle, self._is_on = None, False
