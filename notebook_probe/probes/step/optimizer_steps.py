"""Steps, counted from what the optimizers do, with no change to the training loop.

torch's global optimizer hooks are registered once, at import, and never touched again: changing
them later from another thread raises inside its ``optimizer.step()``. They speak to every
live `Listener`, held weakly in a tuple that is replaced rather than changed.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.live_options import (
    LiveOptions,
    has_factors,
    live_options,
    options_by_id,
    rate_of,
)
from notebook_probe.probes.step.phase import any_step_is_active, is_captured, step_is_active
from notebook_probe.uninterrupted import uninterrupted, whole

__all__ = ["Listener", "lap", "listen", "running", "step_begins", "step_ended"]


class Listener(Protocol):
    """Protocol of a listener to optimizer steps."""

    can_be_interrupted: bool
    """An interrupt within `step_ends` loses nothing that cannot be learned later."""
    rests_until: int
    """Number of the update, of those of all optimizers, until which nothing need be announced."""

    def update_comes(self, optimizer: Optimizer) -> None:
        """Handle the beginning and the final gradients at once: nothing runs between them."""

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """Handle final gradients; with a closure this is called once after each of its runs."""

    def step_ends(self, optimizer: Optimizer) -> None:
        """Handle the end, when the weights have changed."""


@runtime_checkable
class BeginListener(Listener, Protocol):
    """Protocol of a listener to the beginnings of steps, too."""

    def step_begins(self, optimizer: Optimizer) -> None:
        """Handle the beginning, when the weights are still those of the forward."""


_listeners: tuple[weakref.ref[Listener], ...] = ()
_begin_listeners: tuple[weakref.ref[BeginListener], ...] = ()
_lock = threading.RLock()  # a garbage collector may end a run in between
_readers: weakref.WeakKeyDictionary[Optimizer, RemovableHandle] = weakref.WeakKeyDictionary()


def listen(listener: Listener) -> Callable[[], None]:
    """Notify ``listener`` of every optimizer step from now on, and return a function to stop it."""
    reference = weakref.ref(listener)
    _replace(add=(reference,))
    return lambda: _replace(drop=reference)


def _replace(
    add: tuple[weakref.ref[Listener], ...] = (), drop: weakref.ref[Listener] | None = None
) -> None:
    global _listeners, _begin_listeners
    with _lock, uninterrupted:
        kept = tuple(ref for ref in _listeners if ref is not drop and ref() is not None)
        _listeners = kept + add
        # Each call counts, and few listen to beginnings.
        every = [ref() for ref in _listeners]
        _begin_listeners = tuple(
            weakref.ref(one) for one in every if isinstance(one, BeginListener)
        )


def lap() -> float:
    """Seconds since torch called the optimizer's hook that runs on this thread, or the last lap."""
    now = running.now
    last, now.lap = now.lap, time.perf_counter()
    return now.lap - last


# Both hooks run in every step of every optimizer: what is usual is done without a further call.


def _before(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if torch.compiler.is_dynamo_compiling():
        # What torch disables costs a third of all that is done here: only a trace goes through it.
        return _untraced_before(optimizer, args, kwargs)
    if torch.cuda._initialized and is_captured():
        return None
    now, listeners, options = running.now, _listeners, options_by_id.get(id(optimizer))
    if options is None and not listeners:  # no run watches, and no option was set
        return None
    now.lap, now.number = time.perf_counter(), next(_numbers)
    if not now.begun:
        now.begun.append(id(optimizer))
    elif running.begin(optimizer):
        return None
    if options is None or options.acts:
        if not (listeners or has_factors(optimizer)):
            return None
        options = live_options(optimizer)
    if options.acts or kwargs or len(args) > 1 or optimizer._optimizer_step_pre_hooks:
        return _begin_in_parts(optimizer, args, kwargs, options)
    if [*map(rate_of, optimizer.param_groups)] == options.rates:
        options.has_begun, options.moves = True, False
        options.n_updates += 1
    else:
        options.step_begins(optimizer)
        _announce_to_all()
    for reference in listeners:
        listener = reference()
        if listener is not None and listener.rests_until <= now.number:
            listener.update_comes(optimizer)
    return None


def _begin_in_parts(
    optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any], options: LiveOptions
) -> Any:
    """Announce a step whose options are set, or whose gradients may change before it is made."""
    _announce_to_all()
    for beginning in _begin_listeners:
        if (waiting := beginning()) is not None:
            waiting.step_begins(optimizer)
    options.step_begins(optimizer)
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if callable(closure):
        return _with_closure(args, kwargs, _with_reading(closure, optimizer))
    if optimizer._optimizer_step_pre_hooks:  # the user's own, which may clip, run after this one
        _read_behind_hooks(optimizer)
        return None
    for reference in _listeners:
        if (listener := reference()) is not None:
            listener.gradients_ready(optimizer)
    return None


def _announce_to_all() -> None:
    """End the rest of every listener: something of an optimizer has changed."""
    for reference in _listeners:
        if (listener := reference()) is not None:
            listener.rests_until = 0


def _after(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if torch.compiler.is_dynamo_compiling():
        _untraced_after(optimizer, args, kwargs)
        return
    if torch.cuda._initialized and is_captured():
        return
    now, listeners, options = running.now, _listeners, options_by_id.get(id(optimizer))
    if options is None and not (listeners or now.begun):
        return
    is_usual = options is not None and not options.acts and len(now.begun) == 1 and not _readers
    for reference in listeners if is_usual else ():
        listener = reference()
        if listener is not None and listener.rests_until <= now.number:
            is_usual &= listener.can_be_interrupted
    if not is_usual or options is None or now.begun[0] != id(optimizer):
        with uninterrupted:  # the weights have changed, and the step counts
            _end(optimizer)
        return
    now.lap = time.perf_counter()
    now.begun.clear()
    for reference in listeners:
        listener = reference()
        if listener is not None and listener.rests_until <= now.number:
            listener.step_ends(optimizer)
    options.has_begun = False
    if [*map(rate_of, optimizer.param_groups)] != options.rates:
        options.step_ends(optimizer)
        _announce_to_all()


def step_begins(optimizer: Optimizer) -> None:
    """Announce a step that torch does not announce."""
    _before(optimizer, (optimizer,), {})


def step_ended(optimizer: Optimizer) -> None:
    """Announce the end of a step that torch does not announce."""
    _after(optimizer, (optimizer,), {})


def _end(optimizer: Optimizer) -> None:
    now = running.now
    now.lap = time.perf_counter()
    if now.begun == [id(optimizer)]:
        now.begun.clear()
    elif running.end(optimizer):
        return
    listeners = _listeners
    if not (listeners or has_factors(optimizer)):
        return
    if _readers:
        _forget_reader(optimizer)
    options = live_options(optimizer)
    if options.first is not None:
        options.act_again(optimizer)
    for reference in listeners:
        if (listener := reference()) is not None and listener.rests_until <= now.number:
            listener.step_ends(optimizer)
    options.step_ends(optimizer)


_untraced_before = torch.compiler.disable(_before)
_untraced_after = torch.compiler.disable(_after)


def _with_closure(
    args: tuple[Any, ...], kwargs: dict[str, Any], closure: Callable[[], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if "closure" in kwargs:
        return args, {**kwargs, "closure": closure}
    return (args[0], closure, *args[2:]), kwargs


def _tell_gradients(optimizer: Optimizer) -> None:
    lap()  # the closure is the user's
    for reference in _listeners:
        if (listener := reference()) is not None:
            listener.gradients_ready(optimizer)


def _read_behind_hooks(optimizer: Optimizer) -> None:
    """Read the gradients after the optimizer's own hooks, which torch has not begun to call."""
    _forget_reader(optimizer)
    _readers[optimizer] = optimizer.register_step_pre_hook(
        lambda optimizer, args, kwargs: _tell_gradients(optimizer)
    )


@whole
def _forget_reader(optimizer: Optimizer) -> None:
    handle = _readers.pop(optimizer, None)
    if handle is not None:
        handle.remove()


def _with_reading(closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
    """Return the user's closure; the gradients it leaves are read each time it returns."""

    def run() -> Any:
        loss = closure()
        _tell_gradients(optimizer)
        return loss

    return run


@dataclass(slots=True)
class _StepsOnThread:
    """The optimizers whose steps run on one thread.

    Attributes
    ----------
    begun : list of int
        Identities of the optimizers, the outermost first.
    lap : float
        Time at which torch called the hook that runs, or at which its costs were counted last.
    number : int
        Number of the update that has begun last, of those of all optimizers.
    """

    begun: list[int] = field(default_factory=list)
    lap: float = 0.0
    number: int = 0


class _RunningSteps(threading.local):
    """The optimizers whose steps run on this thread.

    A subclass that calls ``super().step()`` fires the hooks twice; the outer call counts. A step
    that raises fires no second hook: where one seems to run inside another the stack is asked,
    which takes longer the deeper it is, and only there.
    """

    def __init__(self) -> None:
        self.now = _StepsOnThread()

    def begin(self, optimizer: Optimizer) -> bool:
        """Note that a step begins; return True when it is part of another of the same optimizer."""
        now, own, is_nested = self.now, id(optimizer), False
        if not any_step_is_active(skip=1):
            now.begun = []  # left by steps that have raised
        elif own in now.begun:
            is_nested = step_is_active(optimizer, skip=1)
            if not is_nested:
                now.begun = [other for other in now.begun if other != own]
        now.begun.append(own)
        return is_nested

    def end(self, optimizer: Optimizer) -> bool:
        """Note that a step is over; return True when it was part of another."""
        now, own = self.now, id(optimizer)
        if own in now.begun:  # else it began before this was imported
            now.begun.remove(own)
        return own in now.begun and step_is_active(optimizer, skip=1)


running, _numbers = _RunningSteps(), itertools.count(1)

register_optimizer_step_pre_hook(_before)
register_optimizer_step_post_hook(_after)
