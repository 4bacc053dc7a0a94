"""Steps, counted from what the optimizers do, with no change to the training loop.

torch's global optimizer hooks are registered once, at import, and never touched again: changing
them later from another thread raises inside its ``optimizer.step()``. They speak to every
live `Listener`, held weakly in a tuple that is replaced rather than changed.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.live_options import has_factors, known_options, live_options
from notebook_probe.probes.step.phase import any_step_is_active, is_captured, step_is_active
from notebook_probe.uninterrupted import uninterrupted, whole

__all__ = ["Listener", "SharedSteps", "StepClock", "lap", "listen", "running"]


class Listener(Protocol):
    """Protocol of a listener to optimizer steps."""

    can_be_interrupted: bool
    """An interrupt within `step_ends` loses nothing that cannot be learned later."""

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
    last, running.lap = running.lap, time.perf_counter()
    return running.lap - last


# Both hooks run in every step of every optimizer, so that each call in them is one that counts.


def _before(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if torch.compiler.is_compiling():
        # What torch disables costs a third of all that is done here: only a trace goes through it.
        return _untraced_before(optimizer, args, kwargs)
    if torch.cuda._initialized and is_captured():
        return None
    running.lap = time.perf_counter()
    if not running.begun:
        running.begun.append(id(optimizer))
    elif running.begin(optimizer):
        return None
    listeners = _listeners
    if not (listeners or has_factors(optimizer)):
        return None
    for beginning in _begin_listeners:
        if (waiting := beginning()) is not None:
            waiting.step_begins(optimizer)
    (known_options(optimizer) or live_options(optimizer)).step_begins(optimizer)
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if callable(closure):
        return _with_closure(args, kwargs, _with_reading(closure, optimizer))
    if optimizer._optimizer_step_pre_hooks:  # the user's own, which may clip, run after this one
        _read_behind_hooks(optimizer)
        return None
    for reference in listeners:
        if (listener := reference()) is not None:
            listener.gradients_ready(optimizer)
    return None


def _after(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if torch.compiler.is_compiling():
        _untraced_after(optimizer, args, kwargs)
        return
    if torch.cuda._initialized and is_captured():
        return
    options = known_options(optimizer)
    if options is not None and not options.held:
        for reference in _listeners:
            listener = reference()
            if listener is not None and not listener.can_be_interrupted:
                break
        else:
            _end(optimizer)
            return
    with uninterrupted:  # the weights have changed, and the step counts
        _end(optimizer)


def _end(optimizer: Optimizer) -> None:
    running.lap = time.perf_counter()
    if running.begun == [id(optimizer)]:
        running.begun.clear()
    elif running.end(optimizer):
        return
    listeners = _listeners
    if not (listeners or has_factors(optimizer)):
        return
    if _readers:
        _forget_reader(optimizer)
    options = known_options(optimizer) or live_options(optimizer)
    if options.first is not None:
        options.act_again(optimizer)
    for reference in listeners:
        if (listener := reference()) is not None:
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


class _RunningSteps(threading.local):
    """The optimizers whose steps run on this thread.

    A subclass that calls ``super().step()`` fires the hooks twice; the outer call counts. A step
    that raises fires no second hook: where one seems to run inside another the stack is asked,
    which takes longer the deeper it is, and only there.

    Attributes
    ----------
    begun : list of int
        Identities of the optimizers, the outermost first.
    lap : float
        When torch called the hook that runs, or when its costs were counted last.
    """

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.lap = 0.0

    def begin(self, optimizer: Optimizer) -> bool:
        """Note that a step begins; return True when it is part of another of the same optimizer."""
        own, is_nested = id(optimizer), False
        if not any_step_is_active(skip=1):
            self.begun = []  # left by steps that have raised
        elif own in self.begun:
            is_nested = step_is_active(optimizer, skip=1)
            if not is_nested:
                self.begun = [other for other in self.begun if other != own]
        self.begun.append(own)
        return is_nested

    def end(self, optimizer: Optimizer) -> bool:
        """Note that a step is over; return True when it was part of another."""
        own = id(optimizer)
        if own in self.begun:  # else it began before this was imported
            self.begun.remove(own)
        return own in self.begun and step_is_active(optimizer, skip=1)


running = _RunningSteps()

register_optimizer_step_pre_hook(_before)
register_optimizer_step_post_hook(_after)


class SharedSteps:
    """Counter of steps with calls of the model by another thread than the one that opened them.

    Attributes
    ----------
    n : int
        So many steps.
    first : int
        The first of them; -1 for none.
    """

    def __init__(self) -> None:
        self.n, self.first, self._last = 0, -1, -1

    def note(self, step: int) -> None:
        """Note that another thread has called the model in this step."""
        if self.n == 0:
            self.first = step
        if step != self._last:
            self.n, self._last = self.n + 1, step


class StepClock:
    """Clock of the open step, and of whether its update has happened.

    A step closes lazily: at the next training forward after an optimizer stepped in it, or when
    an optimizer that has already stepped in it steps again.
    """

    def __init__(self, first: int = 0) -> None:
        self.step = first
        self.explicit = False
        """`Run.step()` was called: from then on only it closes steps."""
        self.has_raised = False
        """An optimizer's step has raised in the open step, and none was completed since."""
        self.stepped: list[weakref.ref[Optimizer]] = []
        """Those that have stepped in the open step."""
        self.begun: weakref.ref[Optimizer] | None = None
        """The optimizer whose step has begun last, and has not ended; of several the outermost."""
        self._written: LastWritten | None = None
        self._thread = 0  # the one on which it has begun
        self._n_writes: dict[int, int] = {}  # of a whole step, by the optimizer's identity

    @property
    def has_stepped(self) -> bool:
        return bool(self.stepped)

    @property
    def awaits_another_try(self) -> bool:
        """The update of the open step has raised, and nothing came after it so far."""
        if self.begun is not None:
            self.catch_up()
        return self.has_raised and not self.stepped

    @property
    def upcoming(self) -> int:
        """Number of updates completed: of the step whose update has not happened yet."""
        return self.step + bool(self.stepped)

    @property
    def inside(self) -> Optimizer | None:
        """The optimizer whose step is running on this stack: its closure, perhaps."""
        optimizer = self.begun() if self.begun is not None else None
        return optimizer if optimizer and step_is_active(optimizer) else None

    def is_in(self, optimizer: Optimizer) -> bool:
        """Return whether its step has begun last, and has not ended."""
        return self.begun is not None and self.begun() is optimizer

    def surrounds(self, optimizer: Optimizer) -> bool:
        """Return whether another optimizer of the model is stepping and called this one."""
        other = self.begun() if self.begun is not None else None
        return other is not None and other is not optimizer and step_is_active(other)

    @property
    def ready(self) -> bool:
        """A training forward that begins now belongs to the next step, or to another attempt.

        Also in the closure of an optimizer that has not stepped in the open one.
        """
        if self.begun is not None:
            self.catch_up()
        if self.explicit or not self.stepped:
            return self.has_raised
        inside = self.inside if self.begun is not None else None
        return inside is None or not self._has_stepped(inside)

    def stepped_before(self, optimizer: Optimizer) -> bool:
        if self.begun is not None:
            self.catch_up(optimizer)
        return bool(self.stepped) and not self.explicit and self._has_stepped(optimizer)

    def enter(self, optimizer: Optimizer) -> None:
        """Begin an optimizer's step, replacing what one that raised has left."""
        self._written = None
        groups = optimizer.param_groups
        for i in range(len(groups) - 1, -1, -1):
            values = groups[i]["params"]
            for j in range(len(values) - 1, -1, -1):
                if values[j].grad is not None and not values[j].is_inference():
                    self._written = LastWritten(i, j, values[j]._version)
                    break
            if self._written is not None:
                break
        self.begun, self._thread = weakref.ref(optimizer), threading.get_ident()

    def leave(self, optimizer: Optimizer) -> None:
        if not (self.stepped and self._has_stepped(optimizer)):
            self.stepped.append(weakref.ref(optimizer))
        self.begun, self.has_raised = None, False
        if self._written is not None:
            group, place, version = self._written
            try:
                last = optimizer.param_groups[group]["params"][place]
            except IndexError:  # a group was taken out meanwhile
                return
            self._n_writes[id(optimizer)] = last._version - version

    def catch_up(self, beginning: Optimizer | None = None) -> None:
        """Learn what became of a step that has begun and whose end no hook has reported.

        It counts if it was interrupted after its update; else it has raised. The step of
        ``beginning`` that is active now is another one.
        """
        optimizer = self.begun() if self.begun is not None else None
        if optimizer is None or step_is_active(optimizer, skip=int(optimizer is beginning)):
            return
        usual = self._n_writes.get(id(optimizer), 1)
        if self._written is not None and self._written.n_writes(optimizer) >= usual:
            self.leave(optimizer)
        elif self._thread not in sys._current_frames().keys() - {threading.get_ident()}:
            self.begun, self.has_raised = None, True  # else it may run there still

    def advance(self) -> None:
        """Close the open step and open the next."""
        self.step += 1
        self.stepped, self.has_raised = [], False

    def _has_stepped(self, optimizer: Optimizer) -> bool:
        return any(ref() is optimizer for ref in self.stepped)


class LastWritten(NamedTuple):
    """The parameter that an optimizer updates last, and how often it has been written to.

    It is known by its place: a reference would forbid torch to swap it.
    """

    group: int
    place: int
    version: int

    def n_writes(self, optimizer: Optimizer) -> int:
        """Return how often it was written to since; those before it were as often."""
        groups = optimizer.param_groups
        if self.group >= len(groups) or self.place >= len(groups[self.group]["params"]):
            return 0
        version: int = groups[self.group]["params"][self.place]._version
        return version - self.version
