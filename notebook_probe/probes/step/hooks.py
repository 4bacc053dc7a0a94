"""Hooks that are on a module only while they are wanted, and stay silent in its copies."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

__all__ = ["Inert", "Switch", "WeakHook"]


class Inert:
    """A hook that outlives its owner: copies, pickles and forks of a model must stay silent."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None


class WeakHook:
    """A hook that holds its owner weakly, and copies or pickles as an inert one.

    In a compiled region it must be nothing: ``torch.compiler.is_compiling()`` folds away there.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)

    def __deepcopy__(self, memo: object) -> Inert:
        return Inert()

    def __reduce__(self) -> tuple[type[Inert], tuple[()]]:
        return Inert, ()


class Switch:
    """One hook that is put on and taken off many times, at the cost of a dict entry.

    A hook that has nothing to do would cost its module a microsecond per call. It keeps its place
    among the hooks of others: what they do to a call before or after it stays before or after.

    Parameters
    ----------
    hook : callable
    module : nn.Module
        Not kept.
    register : callable
        ``register(module, hook)`` gives torch's handle.
    """

    __slots__ = ("_before", "_handle", "_hook", "_is_on")

    def __init__(
        self,
        hook: Callable[..., Any],
        module: nn.Module,
        register: Callable[[nn.Module, Callable[..., Any]], RemovableHandle],
    ) -> None:
        self._hook = hook
        self._handle = register(module, hook)
        self._before: frozenset[int] = frozenset()
        self._is_on = True
        self.set(False)

    def set(self, on: bool) -> None:
        """Put the hook on, or take it off."""
        if on == self._is_on:
            return
        self._is_on = on
        hooks, own = self._handle.hooks_dict_ref(), self._handle.id
        if hooks is None:  # the module is gone
            return
        if on:
            hooks[own] = self._hook
            for other in [key for key in hooks if key not in self._before and key != own]:
                hooks.move_to_end(other)
        elif own in hooks:
            earlier = takewhile(lambda key: key != own, hooks) if len(hooks) > 1 else ()
            self._before = frozenset(earlier)
            del hooks[own]

    @property
    def was_cleared(self) -> bool:
        """Somebody else took the hook off."""
        hooks = self._handle.hooks_dict_ref()
        return self._is_on and (hooks is None or self._handle.id not in hooks)

    def remove(self) -> None:
        """Take the hook off for good, with all that torch keeps of it."""
        self._handle.remove()
        self._is_on = False
