"""The next training call of the model, whose arguments a request waits for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["AwaitedCall", "NextCall"]

NOT_CALLED = (
    "the model itself was not called in step {} and the next, or as compiled code, which runs no "
    "hooks"
)


class AwaitedCall:
    """The next call, while it is awaited.

    Parameters
    ----------
    observer : Observer
        Distinguishes calls of the training.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._call: NextCall | None = None

    @property
    def is_awaited(self) -> bool:
        """True from `begin` until the call is taken or forgotten."""
        return self._call is not None

    def begin(self, model: nn.Module, step: int) -> None:
        """Wait for the first call of ``model`` in ``step``, unless one is awaited."""
        if self._call is None:
            self._call = NextCall(model, self._observer, step)

    def take(self, step: int) -> NextCall | None:
        """Return the call once a step has ended since; between steps only.

        A hook added while a call starts is not called before the next one: one more step is waited
        for. If the model was not called then, either, the call has no arguments.
        """
        call = self._call
        if call is None or step <= call.step:
            return None
        if call.given is None and step == call.step + 1:
            return None
        self.forget()
        return call

    def forget(self) -> None:
        """Wait for no call any more."""
        call, self._call = self._call, None
        if call is not None:
            call.remove()


class NextCall:
    """First call of the model in a step, with its arguments.

    Parameters
    ----------
    model : nn.Module
        Held weakly, and hooked until `remove`.
    observer : Observer
    step : int

    Attributes
    ----------
    given : tuple of tuple and dict, or None
        Arguments of the call; None before it.
    """

    def __init__(self, model: nn.Module, observer: Observer, step: int) -> None:
        self.step, self._observer = step, observer
        self.given: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        hook = _OnCall(self)
        # An interrupt after registering would leave a hook without a handle.
        with uninterrupted:
            self._handle = UncopiedHandle(model.register_forward_pre_hook(hook, with_kwargs=True))

    @property
    def why_none(self) -> str:
        """Reason why it has no arguments."""
        return NOT_CALLED.format(self.step)

    def called(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the arguments of a training call."""
        is_training = self._observer.phase.now == "training"
        if self.given is None and is_training and self._observer.watches(module):
            self.given = _detached(args), _detached(kwargs)

    def remove(self) -> None:
        """Remove the hook."""
        self._handle.remove()


class _OnCall(WeakHook):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, kwargs: Any = None) -> None:
        """Notify the owner; torch calls a hook removed at call start again, without keywords."""
        if torch.compiler.is_compiling() or (awaited := self.owner()) is None or is_traced():
            return
        awaited.called(module, args, kwargs or {})


def _detached(value: Any) -> Any:
    """Return the same values, detached from their graphs."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach(), value)
