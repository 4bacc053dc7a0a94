"""The number of the open step, and what the optimizers have done in it."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.probes.step.phase import step_is_active

__all__ = ["SharedSteps", "StepClock"]


class SharedSteps:
    """Counter of steps with calls of the model by another thread than the one that opened them.

    Attributes
    ----------
    n : int
        Number of these steps.
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
        self.written: LastWritten | None = None
        """Parameter that this step will write last; None of an optimizer without gradients."""
        self.version = 0
        """Version of that parameter as the step began."""
        self.thread = 0
        """Thread on which it has begun."""
        self.n_writes: dict[int, int] = {}
        """How often a whole step writes to that parameter, by the optimizer's identity."""
        self.wrote_nothing = False
        """The step that has ended last had a gradient, and has not written to that parameter."""

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
        self.written, groups = None, optimizer.param_groups
        for i in range(len(groups) - 1, -1, -1):
            values = groups[i]["params"]
            for j in range(len(values) - 1, -1, -1):
                if values[j].grad is not None and not values[j].is_inference():
                    self.written, self.version = LastWritten(i, j), values[j]._version
                    break
            if self.written is not None:
                break
        self.begun, self.thread = weakref.ref(optimizer), threading.get_ident()

    def leave(self, optimizer: Optimizer) -> None:
        if not (self.stepped and self._has_stepped(optimizer)):
            self.stepped.append(weakref.ref(optimizer))
        self.begun, self.has_raised, self.wrote_nothing = None, False, False
        if self.written is not None and (now := self.written.version(optimizer)) is not None:
            n_writes = self.n_writes[id(optimizer)] = now - self.version
            self.wrote_nothing = n_writes == 0

    def catch_up(self, beginning: Optimizer | None = None) -> None:
        """Learn what became of a step that has begun and whose end no hook has reported.

        It counts if it was interrupted after its update; else it has raised. The step of
        ``beginning`` that is active now is another one.
        """
        optimizer = self.begun() if self.begun is not None else None
        if optimizer is None or step_is_active(optimizer, skip=int(optimizer is beginning)):
            return
        usual = self.n_writes.get(id(optimizer), 1)
        now = self.written.version(optimizer) if self.written is not None else None
        if now is not None and now - self.version >= usual:
            self.leave(optimizer)
        elif self.thread not in sys._current_frames().keys() - {threading.get_ident()}:
            self.begun, self.has_raised = None, True  # else it may run there still

    def advance(self) -> None:
        """Close the open step and open the next."""
        self.step += 1
        self.stepped, self.has_raised = [], False

    def _has_stepped(self, optimizer: Optimizer) -> bool:
        return weakref.ref(optimizer) in self.stepped  # no call for each, as at every step


class LastWritten(NamedTuple):
    """Place of the parameter that an optimizer updates last, whose version counts the updates.

    It is known by its place: a reference would forbid torch to swap it.
    """

    group: int
    place: int

    def parameter(self, optimizer: Optimizer) -> Tensor | None:
        """Return the parameter; None if it was taken out."""
        groups = optimizer.param_groups
        if self.group >= len(groups) or self.place >= len(groups[self.group]["params"]):
            return None
        found: Tensor = groups[self.group]["params"][self.place]
        return found

    def version(self, optimizer: Optimizer) -> int | None:
        """Return its version; None if it was taken out. Those before it were written as often."""
        found = self.parameter(optimizer)
        return None if found is None else found._version
