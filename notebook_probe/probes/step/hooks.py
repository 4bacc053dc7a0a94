"""Hooks that are on a module only while they are wanted, and stay silent in its copies."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
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

    A hook that has nothing to do would cost its module a microsecond per call. It keeps the place
    among the hooks of others that it had from the start: what they do to a call before or after it
    stays before or after.

    Parameters
    ----------
    hook : callable
    module : nn.Module
        Held weakly.
    others : mapping
        The module's hooks of this kind.
    register : callable
        ``register(module, hook)`` gives torch's handle; called once it is first put on.
    """

    __slots__ = ("_before", "_handle", "_hook", "_is_on", "_module", "_register")

    def __init__(
        self,
        hook: Callable[..., Any],
        module: nn.Module,
        others: Mapping[int, object],
        register: Callable[[nn.Module, Callable[..., Any]], RemovableHandle],
    ) -> None:
        self._hook, self._register = hook, register
        self._module = weakref.ref(module)
        self._handle: RemovableHandle | None = None
        self._before = frozenset(others)
        self._is_on = False

    def set(self, on: bool) -> None:
        """Put the hook on, or take it off."""
        if on == self._is_on:
            return
        self._is_on = on
        if on:
            self._put_on()
        else:
            self._take_off()

    def _put_on(self) -> None:
        module = self._module()
        if module is None:
            return
        if self._handle is None:
            self._handle = self._register(module, self._hook)
        hooks, own = self._hooks, self._handle.id
        hooks[own] = self._hook
        if len(hooks) > 1:
            for other in [key for key in hooks if key not in self._before and key != own]:
                hooks.move_to_end(other)

    def _take_off(self) -> None:
        hooks, own = self._hooks, self._id
        if own in hooks:
            earlier = takewhile(lambda key: key != own, hooks) if len(hooks) > 1 else ()
            self._before = frozenset(earlier)
            del hooks[own]

    @property
    def _hooks(self) -> OrderedDict[int, Any]:
        """The module's hooks of this kind; none when it is gone."""
        hooks = self._handle.hooks_dict_ref() if self._handle is not None else None
        return hooks if hooks is not None else OrderedDict()

    @property
    def _id(self) -> int:
        return self._handle.id if self._handle is not None else -1

    @property
    def was_cleared(self) -> bool:
        """Somebody else took the hook off."""
        return self._is_on and self._id not in self._hooks

    def remove(self) -> None:
        """Take the hook off for good, with all that torch keeps of it."""
        if self._handle is not None:
            self._handle.remove()
        self._is_on = False
