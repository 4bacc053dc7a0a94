"""Steps, counted from what the optimizers do, with no change to the training loop.

torch's global optimizer hooks are registered once, at import, and never touched again: changing
them later from another thread raises inside somebody's ``optimizer.step()``. They speak to every
live `Listener`, held weakly in a tuple that is replaced rather than changed.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.live_options import has_factors, live_options
from notebook_probe.probes.step.phase import step_is_active

__all__ = ["Listener", "StepClock", "lap", "listen"]


class Listener(Protocol):
    """Whoever wants to hear of optimizer steps."""

    def step_begins(self, optimizer: Optimizer) -> None:
        """The weights are still those of the forward."""

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """The gradients are final; with a closure this comes once after each of its runs."""

    def step_ends(self, optimizer: Optimizer) -> None:
        """The weights have changed."""


_listeners: tuple[weakref.ref[Listener], ...] = ()
_lock = threading.Lock()
_readers: weakref.WeakKeyDictionary[Optimizer, RemovableHandle] = weakref.WeakKeyDictionary()


def listen(listener: Listener) -> Callable[[], None]:
    """Tell ``listener`` of every optimizer step from now on; returns what ends it."""
    reference = weakref.ref(listener)
    _replace(add=(reference,))
    return lambda: _replace(drop=reference)


def _replace(
    add: tuple[weakref.ref[Listener], ...] = (), drop: weakref.ref[Listener] | None = None
) -> None:
    global _listeners
    with _lock:
        kept = tuple(ref for ref in _listeners if ref is not drop and ref() is not None)
        _listeners = kept + add


def lap() -> float:
    """Seconds since torch called the optimizer's hook that runs on this thread, or the last lap."""
    last, _running.lap = _running.lap, time.perf_counter()
    return _running.lap - last


def _live() -> list[Listener]:
    return [listener for ref in _listeners if (listener := ref()) is not None]


def _before(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    # What torch disables costs a third of all that is done here: only a trace goes through it.
    begins = _untraced_begins if torch.compiler.is_compiling() else _begins
    return begins(optimizer, args, kwargs)


def _after(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    ends = _untraced_ends if torch.compiler.is_compiling() else _ends
    ends(optimizer)


def _begins(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    lap()
    is_nested, listeners = _running.begin(optimizer), _live()
    if is_nested or not (listeners or has_factors(optimizer)):
        return None
    for listener in listeners:
        listener.step_begins(optimizer)
    live_options(optimizer).step_begins(optimizer)
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if callable(closure):
        return _with_closure(args, kwargs, _with_reading(closure, optimizer))
    if optimizer._optimizer_step_pre_hooks:  # the user's own, which may clip, run after this one
        _read_behind_hooks(optimizer)
    else:
        for listener in listeners:
            listener.gradients_ready(optimizer)
    return None


def _with_closure(
    args: tuple[Any, ...], kwargs: dict[str, Any], closure: Callable[[], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if "closure" in kwargs:
        return args, {**kwargs, "closure": closure}
    return (args[0], closure, *args[2:]), kwargs


def _tell_gradients(optimizer: Optimizer) -> None:
    lap()  # the closure is the user's
    for listener in _live():
        listener.gradients_ready(optimizer)


def _read_behind_hooks(optimizer: Optimizer) -> None:
    """Read the gradients behind the optimizer's own hooks, which torch has not begun to call."""
    _forget_reader(optimizer)
    _readers[optimizer] = optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: _tell_gradients(optimizer)
    )


def _forget_reader(optimizer: Optimizer) -> None:
    handle = _readers.pop(optimizer, None)
    if handle is not None:
        handle.remove()


def _with_reading(closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
    """The user's closure; the gradients it leaves are read each time it returns."""

    def run() -> Any:
        loss = closure()
        _tell_gradients(optimizer)
        return loss

    return run


def _ends(optimizer: Optimizer) -> None:
    lap()
    is_nested, listeners = _running.end(optimizer), _live()
    if is_nested or not (listeners or has_factors(optimizer)):
        return
    if _readers:
        _forget_reader(optimizer)
    options = live_options(optimizer)
    options.act_again(optimizer)
    for listener in listeners:
        listener.step_ends(optimizer)
    options.step_ends(optimizer)


_untraced_begins = torch.compiler.disable(_begins)
_untraced_ends = torch.compiler.disable(_ends)


class _Running(threading.local):
    """The optimizers whose steps run on this thread.

    A subclass that calls ``super().step()`` fires the hooks twice; the outer call counts. A step
    that raises fires no second hook: where one seems to run inside another the stack is asked,
    which takes longer the deeper it is, and only there.
    """

    def __init__(self) -> None:
        self._begun: list[int] = []
        self.lap = 0.0

    def begin(self, optimizer: Optimizer) -> bool:
        """A step begins; True when it is part of another of the same optimizer."""
        own, is_nested = id(optimizer), False
        if own in self._begun:
            is_nested = step_is_active(optimizer, skip=1)
            if not is_nested:
                self._begun = [other for other in self._begun if other != own]
        self._begun.append(own)
        return is_nested

    def end(self, optimizer: Optimizer) -> bool:
        """A step is over; True when it was part of another."""
        own = id(optimizer)
        if own in self._begun:  # else it began before this was imported
            self._begun.remove(own)
        return own in self._begun and step_is_active(optimizer, skip=1)


_running = _Running()

register_optimizer_step_pre_hook(_before)
register_optimizer_step_post_hook(_after)


class StepClock:
    """Which step is open, and whether its update has happened.

    A step closes lazily: at the next training forward after an optimizer stepped in it, or when
    an optimizer that has already stepped in it steps again.
    """

    def __init__(self, first: int = 0) -> None:
        self.step = first
        self.explicit = False
        """`Run.step()` was called: from then on only it closes steps."""
        self._stepped: list[weakref.ref[Optimizer]] = []
        self._inside: weakref.ref[Optimizer] | None = None

    @property
    def has_stepped(self) -> bool:
        return bool(self._stepped)

    @property
    def upcoming(self) -> int:
        """Number of updates completed: of the step whose update has not happened yet."""
        return self.step + bool(self._stepped)

    @property
    def inside(self) -> Optimizer | None:
        """The optimizer whose step is running on this stack: its closure, perhaps."""
        optimizer = self._inside() if self._inside is not None else None
        return optimizer if optimizer and step_is_active(optimizer) else None

    def is_in(self, optimizer: Optimizer) -> bool:
        """Its step has begun last, and has not ended."""
        return self._inside is not None and self._inside() is optimizer

    def was_interrupted(self, beginning: Optimizer) -> bool:
        """Before ``beginning``, a step began and did not end: it raised."""
        if self._inside is None:
            return False
        return self._inside() is beginning or self.inside is None

    @property
    def ready(self) -> bool:
        """A training forward that begins now belongs to the next step.

        Also in the closure of an optimizer that has not stepped in the open one.
        """
        if self.explicit or not self._stepped:
            return False
        inside = self.inside if self._inside is not None else None
        return inside is None or not self._has_stepped(inside)

    def stepped_before(self, optimizer: Optimizer) -> bool:
        return bool(self._stepped) and not self.explicit and self._has_stepped(optimizer)

    def enter(self, optimizer: Optimizer) -> None:
        """Begin an optimizer's step, replacing what one that raised has left."""
        self._inside = weakref.ref(optimizer)

    def leave(self, optimizer: Optimizer) -> None:
        self._inside = None
        if not (self._stepped and self._has_stepped(optimizer)):
            self._stepped.append(weakref.ref(optimizer))

    def advance(self) -> None:
        """Close the open step and open the next."""
        self.step += 1
        self._stepped = []

    def _has_stepped(self, optimizer: Optimizer) -> bool:
        return any(ref() is optimizer for ref in self._stepped)
