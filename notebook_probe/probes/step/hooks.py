"""Hooks that are on a module only while they are wanted, and that no copy of it ever has."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import takewhile
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Switch", "UncopiedHandle", "WeakHook"]


class WeakHook:
    """A hook that holds its owner weakly.

    In a compiled region it must be nothing: ``torch.compiler.is_compiling()`` folds away there.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a function that does nothing, for code that copies hooks one by one."""
        return getattr, (nullcontext(), "__exit__")


class UncopiedHandle:
    """torch's handle of a hook that pickles and copies of the module do not have.

    Parameters
    ----------
    handle : RemovableHandle
    """

    __slots__ = ("_handle", "id")

    def __init__(self, handle: RemovableHandle) -> None:
        self._handle, self.id = handle, handle.id
        for hooks in self._dicts():
            if self.id in hooks:
                of_pickle = vars(hooks).get("__reduce_ex__")
                if of_pickle is None:
                    of_pickle = hooks.__reduce_ex__ = _WithoutOurs(hooks)
                of_pickle.own.add(self.id)

    @property
    def hooks(self) -> OrderedDict[int, Callable[..., Any]] | None:
        """The module's hooks of this kind; None when the module is gone."""
        hooks: OrderedDict[int, Callable[..., Any]] | None = self._handle.hooks_dict_ref()
        return hooks

    def remove(self) -> None:
        """Take the hook off, with all that is kept of it."""
        self._handle.remove()
        for hooks in self._dicts():
            without = vars(hooks).get("__reduce_ex__")
            if without is not None:
                without.own.discard(self.id)
                if not without.own:
                    del hooks.__reduce_ex__

    def _dicts(self) -> list[Any]:
        """Return the dicts in which torch keeps the hook and its options by the hook's number."""
        references = (self._handle.hooks_dict_ref, *self._handle.extra_dict_ref)
        return [hooks for ref in references if (hooks := ref()) is not None]


class _WithoutOurs:
    """The ``__reduce_ex__`` of one dict of hooks: it pickles as it would without ours.

    Both ``pickle`` and ``copy.deepcopy`` ask the object itself. So the dict stays the one that
    other people's handles know, and neither the module nor its class learns of it.
    """

    __slots__ = ("_hooks", "own")

    def __init__(self, hooks: Any) -> None:
        self._hooks = weakref.ref(hooks)
        self.own: set[int] = set()

    def __call__(self, protocol: Any) -> Any:
        every = [*(self._hooks() or {}).items()]
        others = OrderedDict((key, hook) for key, hook in every if key not in self.own)
        return others.__reduce_ex__(protocol)


class Switch:
    """Hook that is put on and taken off many times, at the cost of a dict entry.

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
        self._handle: UncopiedHandle | None = None
        self._before = frozenset(others)
        self._is_on: bool | None = False

    def set(self, on: bool) -> None:
        """Put the hook on, or take it off."""
        if on == self._is_on:
            return
        self._is_on = None  # until it is done, which an interrupt may prevent
        if on:
            self._put_on()
        else:
            self._take_off()
        self._is_on = on

    def _put_on(self) -> None:
        module = self._module()
        if module is None:
            return
        if self._handle is None:
            with uninterrupted:  # a hook whose handle is lost would stay
                self._handle = UncopiedHandle(self._register(module, self._hook))
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
        hooks = self._handle.hooks if self._handle is not None else None
        return hooks if hooks is not None else OrderedDict()

    @property
    def _id(self) -> int:
        return self._handle.id if self._handle is not None else -1

    @property
    def was_cleared(self) -> bool:
        """True if other code removed the hook."""
        return self._is_on is True and self._id not in self._hooks

    def remove(self) -> None:
        """Remove the hook permanently, with everything that torch keeps of it."""
        if self._handle is not None:
            self._handle.remove()
        self._is_on = False
