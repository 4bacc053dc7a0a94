"""The steps of a bare module, seen from its calls and from what optimizers do to it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from torch import nn
from torch.optim import Optimizer

from notebook_probe.probes.calls.root_hooks import hook_root
from notebook_probe.probes.parameters.ownership import Ownership
from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.optimizer_steps import listen
from notebook_probe.probes.step.phase import Phase, PhaseOfThread, is_traced
from notebook_probe.probes.step_clock import StepClock
from notebook_probe.train.collector.executor import Step
from notebook_probe.train.collector.thread_steps import ThreadSteps

__all__ = ["EvaluationSteps", "TrainingSteps"]


class _ModuleSteps:
    """Listener to a module's calls and updates.

    Parameters
    ----------
    module : nn.Module
        Held weakly; its hooks hold this weakly.
    first : int
        Number of the step that is open now.
    ended : callable
        ``ended(step)`` is called with each that is complete, and with what came after that in one.
    """

    can_be_interrupted, rests_until = False, 0

    def __init__(self, module: nn.Module, first: int, ended: Callable[[Step], None]) -> None:
        self._module, self._ended = weakref.ref(module), ended
        self._phase, self._clock = PhaseOfThread(), StepClock(first)
        self._ownership = Ownership(module)
        handles = [*self._hooks(module), *hook_root(module, self)]
        # Also without `close`: the hooks of a collector that was dropped would slow the model.
        self._end_hooks = weakref.finalize(self, _remove, handles)
        self._end_listening = listen(self)

    @property
    def model(self) -> nn.Module | None:
        return self._module()

    @property
    def is_alive(self) -> bool:
        return self._module() is not None

    def close(self) -> None:
        self._end_hooks()
        self._end_listening()

    def now(self) -> Step | None:
        module = self._module()
        if module is None:
            return None
        phase = self._phase.now
        if phase is not None and self._phase.left(module):  # an interrupt runs no hook
            phase = None
        return self._now(phase, module.training)

    # ---------------------------------------------------------------- what is heard

    def watches(self, module: nn.Module) -> bool:
        """Return whether this model is the watched one; see `RootListener`."""
        return self._module() is module

    def enter(self, root: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Handle the start of a call; see `RootListener`."""
        if self._phase.enter(root):
            self._begin_call(root)

    def leave(self, output: object) -> None:
        """Handle the end of a call; see `RootListener`."""
        self._phase.leave()

    def step_begins(self, optimizer: Optimizer) -> None:
        """Handle the start of an optimizer's step; see `Listener`."""
        if self._ownership.has(optimizer):
            if self._clock.stepped_before(optimizer):
                self._advance()
            self._clock.enter(optimizer)

    def update_comes(self, optimizer: Optimizer) -> None:
        """Handle the start of an optimizer's step, too; see `Listener`."""
        self.step_begins(optimizer)

    def gradients_ready(self, optimizer: Optimizer) -> None:
        """Ignore ready gradients; see `Listener`."""

    def step_ends(self, optimizer: Optimizer) -> None:
        """Handle the end of an optimizer's step; see `Listener`."""
        if self._ownership.has(optimizer):
            self._end_update(optimizer)

    # ---------------------------------------------------------------- what it means

    def _now(self, phase: Phase | None, is_training: bool) -> Step | None:
        """Return the step of this thread, in a call of some phase or outside of any."""
        raise NotImplementedError

    def _hooks(self, module: nn.Module) -> list[UncopiedHandle]:
        """Add hooks before those that count calls."""
        return []

    def _begin_call(self, root: nn.Module) -> None:
        """Handle the start of an outermost call."""
        if self._phase.now == "training" and self._clock.ready:
            self._advance()

    def _end_update(self, optimizer: Optimizer) -> None:
        self._clock.leave(optimizer)

    def _advance(self) -> None:
        self._clock.advance()


class TrainingSteps(_ModuleSteps):
    """Training steps: each ends with an update, and lasts until the next training forward.

    Values that the loop names between two steps belong to the step trained last, if the module is
    in training mode.
    """

    def __init__(self, module: nn.Module, first: int, ended: Callable[[Step], None]) -> None:
        self._open = Step(first, is_training=True)
        super().__init__(module, first, ended)

    def _now(self, phase: Phase | None, is_training: bool) -> Step | None:
        if phase is None and is_training:
            return self._open if self._is_of_training(_outermost_call()) else None
        return self._open if phase == "training" else None

    def _is_of_training(self, called: nn.Module | None) -> bool:
        """Return whether the code is training: the loop itself, or a call outside of the module."""
        if called is None:
            return True
        if called.training and self._clock.ready and self._has_part(called):
            self._advance()  # the module itself may never be called
        return called.training

    def _has_part(self, called: nn.Module) -> bool:
        module = self._module()
        return module is not None and any(part is called for part in module.modules())

    def _end_update(self, optimizer: Optimizer) -> None:
        super()._end_update(optimizer)
        self._open.has_ended = True
        self._ended(self._open)

    def _advance(self) -> None:
        super()._advance()
        self._open = Step(self._clock.step, is_training=True)


class EvaluationSteps(_ModuleSteps):
    """Evaluation steps: outermost calls that train nothing, of the state after some updates.

    It lasts until the next call of any kind, for what the loop makes of its output.
    """

    def __init__(self, module: nn.Module, first: int, ended: Callable[[Step], None]) -> None:
        self._threads = ThreadSteps(ended)
        super().__init__(module, first, ended)

    def returned(self) -> None:
        """Note that a call of the module has not raised."""
        if self._phase.now == "evaluation" and not self._phase.outer:
            self._threads.end()

    def _now(self, phase: Phase | None, is_training: bool) -> Step | None:
        return self._threads.now(is_training) if phase in (None, "evaluation") else None

    def _begin_call(self, root: nn.Module) -> None:
        super()._begin_call(root)
        if self._phase.now == "evaluation":
            self._threads.begin(Step(self._clock.upcoming, root.training))
        else:
            self._threads.forget()

    def _hooks(self, module: nn.Module) -> list[UncopiedHandle]:
        return [UncopiedHandle(module.register_forward_hook(_Returned(self)))]


class _Returned(WeakHook):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        steps = self.owner()
        if steps is not None and steps.watches(module) and not is_traced():
            steps.returned()


# Modules that are not watched have no hook of ours; their calls are seen on the stack alone.
_CALL = nn.Module._call_impl.__code__


def _outermost_call() -> nn.Module | None:
    """Return the module whose call is innermost on this stack."""
    called = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            called = frame.f_locals["self"]
        frame = frame.f_back
    return called


def _remove(handles: list[UncopiedHandle]) -> None:
    for handle in handles:
        handle.remove()
