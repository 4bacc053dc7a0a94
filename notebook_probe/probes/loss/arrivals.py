"""Learn which backward passes reach a model, from hooks on a few of its parameters.

A hook runs inside the pass that it reports. Reading the gradients where a pass begins or ends
would not do: another thread's pass may be writing them at that moment, which ends the process.

At first every parameter has a hook. Once the passes of an update are known, one parameter for each
pass is enough, and mostly one for all. A hook on a parameter takes torch 0.6 us in each pass from
then on, also when it has been taken off. So the first ones are on nodes of the pass's graph.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Sequence, Set
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge
from torch.nn.parameter import UninitializedParameter
from torch.utils.hooks import RemovableHandle

from notebook_probe.model.parameter_slots import Slot, distinct, slots_below
from notebook_probe.probes.step.gradient_hooks import hook_accumulation, was_zeroed
from notebook_probe.uninterrupted import whole

__all__ = ["ArrivalListener", "KeptGradient", "NodeHook", "Witnesses"]

MOST = 8
"""The most parameters that have a hook once they are chosen."""
FIRST_STEPS, MOST_AT_FIRST = 8, 1000
"""Steps at the beginning in which every parameter has a hook, unless all of them are reached: other
optimizers may have their turns later; and the most parameters of which this is affordable."""
MOST_AWAITED = 16
"""Passes whose graph gets hooks; if none of them has reached the model, the parameters get them."""
MOST_SOUGHT, MOST_SEARCHES = 16, 3
"""Steps in which a pass of another kind than the known ones is sought, as of heads that are trained
in turn, after one that no hook has seen; and searches in a row that may end without one."""


class ArrivalListener(Protocol):
    """The protocol of an object that is notified of the passes that reach a model.

    `StepLoss`, which imports this module, is one.
    """

    def arrived(self, slot: Slot, parameter: Tensor, begun: float) -> None:
        """Note that the pass on this thread has added to the gradient of a parameter.

        ``begun`` is the time at which the hook was called.
        """


class KeptGradient:
    """A gradient that passes have accumulated at a parameter.

    It is referenced strongly, because torch swaps no tensor that has a weak reference. Release it
    as soon as it is applied or replaced.
    """

    __slots__ = ("gradient", "parameter", "version")

    def __init__(self, parameter: Tensor, gradient: Tensor) -> None:
        self.parameter: Tensor | None = parameter
        self.gradient: Tensor | None = gradient
        self.version = 0
        """How often it had been written to when the last pass had added to it."""

    @property
    def is_there(self) -> bool:
        """True if the parameter still has it, even if its values were changed in place."""
        parameter = self.parameter
        return parameter is not None and self.gradient is parameter.grad is not None

    @property
    def was_cleared(self) -> bool:
        return self.parameter is None or self.parameter.grad is None

    @property
    def was_zeroed(self) -> bool:
        """True if it was filled with zeros since the last pass."""
        return self.gradient is not None and was_zeroed(self.gradient, self.version)


class Witnesses:
    """The hooks on parameters of one model.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    listener : ArrivalListener
        Held weakly.

    Attributes
    ----------
    are_hooked : bool
        Hooks have been put on, and not been taken off.
    are_chosen : bool
        They are on a few parameters.
    """

    def __init__(self, model: nn.Module, listener: ArrivalListener) -> None:
        self._model, self._listener = weakref.ref(model), weakref.ref(listener)
        self._hooked: dict[Slot, _Hook] = {}
        self._slots: Sequence[Slot] = ()
        self._n_awaited = self._n_first = 0
        self._chosen: list[Slot] = []
        self._n_sought = self._n_in_vain = 0
        self.are_chosen = False
        self._lock = threading.RLock()  # a run may be closed on one thread and train on another
        self.are_hooked = False

    def begin(self) -> None:
        """Prepare for the passes of a step."""
        with self._lock:
            if not self.are_hooked:
                self.are_hooked = True
                model = self._model()
                self._slots = distinct(slots_below(model)) if model is not None else ()
            elif self.are_chosen:
                for slot, hook in self._hooked.items():
                    owner = slot.owner()
                    # As slot.get(), which a scripted module needs.
                    own = owner.__dict__.get("_parameters") if owner is not None else None
                    parameter = own.get(slot.name) if isinstance(own, dict) else slot.get()
                    if parameter is None or parameter._cdata != hook.contents:
                        self._hook(self._chosen)
                        break

    @whole
    def await_pass(self) -> Sequence[NodeHook]:
        """Put hooks on all parameters for a pass that begins; return those that are to be removed.

        By the slots that `begin` has found: another thread may change the model now.
        """
        with self._lock:
            self._n_awaited += 1
            if self._n_awaited == MOST_AWAITED:  # each takes its time, and none has come here
                self._hook(self._slots)
            if self._n_awaited >= MOST_AWAITED:
                return ()
            found: list[NodeHook] = []
            for slot in self._slots:
                parameter = slot.get()
                if parameter is None or slot in self._hooked or not _can_be_hooked(parameter):
                    continue
                if parameter._post_accumulate_grad_hooks:  # they may step, and clear the gradient
                    self._hook([slot])
                    continue
                try:
                    found.append(NodeHook(parameter, slot, self._listener))
                except Exception:  # whatever a parameter is
                    self._hook([slot])
            return found

    @whole
    def _hook(self, slots: Iterable[Slot]) -> None:
        """Put a hook on each parameter without one: it may be new, or its contents swapped."""
        for slot in slots:
            parameter, old = slot.get(), self._hooked.get(slot)
            if parameter is None or (old is not None and old.contents == parameter._cdata):
                continue
            if old is not None:
                old.handle.remove()
            if _can_be_hooked(parameter):
                self._hooked[slot] = _Hook(parameter, slot, self._listener, old is not None)

    def choose(self, passes: Sequence[list[Slot]]) -> None:
        """Keep the hooks of as few parameters as are reached by all these passes.

        Hooks that were chosen before stay: what is trained may change from step to step. While one
        of another kind is sought, and none of these is one, all stay.
        """
        with self._lock:
            if not any(passes) or not self.are_hooked:
                return
            self._n_awaited, before = 0, self._chosen
            self._n_first += 1
            for slots in filter(None, passes):
                if not any(slot in self._chosen for slot in slots):
                    self._chosen = [*self._chosen, min(slots, key=_n_elements)][-MOST:]
            is_first = self._n_first < FIRST_STEPS and len(self._slots) <= MOST_AT_FIRST
            if is_first and not self._are_all({slot for slots in passes for slot in slots}):
                return
            if self._chosen is not before:
                self._n_sought = self._n_in_vain = 0
            elif self._n_sought:
                self._n_sought -= 1
                if not self._n_sought:
                    self._n_in_vain += 1
                return
            for slot in self._hooked.keys() - self._chosen:
                self._hooked.pop(slot).handle.remove()
            self._hook(self._chosen)
            self.are_chosen = True

    def _are_all(self, reached: Set[Slot]) -> bool:
        """Return whether these are all that can be trained."""
        left = (slot.get() for slot in self._slots if slot not in reached)
        return not any(value is not None and _can_be_hooked(value) for value in left)

    def forget(self) -> None:
        """Put hooks on all parameters at the next passes, as none has reached a chosen one."""
        self.are_hooked = self.are_chosen = False
        if not self._n_sought and self.may_search:
            self._n_sought = MOST_SOUGHT

    @property
    def may_search(self) -> bool:
        """False once a few searches in a row have ended in vain."""
        return self._n_in_vain < MOST_SEARCHES

    def remove(self) -> None:
        """Take all hooks off."""
        with self._lock:
            hooked, self._hooked = self._hooked, {}
            self.are_hooked = self.are_chosen = False
            self._n_sought = 0
            for hook in hooked.values():
                hook.handle.remove()


class _ArrivalHook:
    """Notify the listener that a pass has added to the gradient of a parameter."""

    __slots__ = ("_listener", "_slot")

    def __init__(self, slot: Slot, listener: weakref.ref[ArrivalListener]) -> None:
        self._slot, self._listener = slot, listener

    def __call__(self, parameter: Tensor) -> None:
        if torch.compiler.is_dynamo_compiling():
            return
        begun = time.perf_counter()
        try:
            if (listener := self._listener()) is not None:
                listener.arrived(self._slot, parameter, begun)
        except Exception:  # whatever a gradient is, its pass runs
            return


class _Hook(_ArrivalHook):
    """The hook on one parameter.

    Attributes
    ----------
    contents : int
        The address of the contents that it is on. If torch swaps the contents of a parameter, the
        hook goes with the old ones, although the parameter still lists it.
    """

    __slots__ = ("contents", "handle")

    def __init__(
        self,
        parameter: Tensor,
        slot: Slot,
        listener: weakref.ref[ArrivalListener],
        is_swapped: bool,
    ) -> None:
        super().__init__(slot, listener)
        self.contents: int = parameter._cdata
        self.handle = hook_accumulation(parameter, self, is_swapped)


class NodeHook(_ArrivalHook):
    """The hook on the node that accumulates a parameter's gradient, for one pass.

    The node is held as long: a checkpoint calls the model in the pass, and takes the same node. No
    longer, because torch swaps no parameter whose node will be used again.
    """

    __slots__ = ("_handle", "_node", "_parameter")

    def __init__(
        self, parameter: Tensor, slot: Slot, listener: weakref.ref[ArrivalListener]
    ) -> None:
        super().__init__(slot, listener)
        self._parameter: Tensor | None = parameter
        node = get_gradient_edge(parameter).node
        self._handle: RemovableHandle = node.register_hook(self._accumulated)
        self._node: Node | None = node

    def remove(self) -> None:
        self._handle.remove()
        self._node = self._parameter = None

    def _accumulated(self, *_: object) -> None:
        # Torch calls the hooks that a node had when it was reached. Another thread, whose pass this
        # one was for, may have removed it since.
        if (parameter := self._parameter) is not None:
            self(parameter)


def _can_be_hooked(parameter: Tensor) -> bool:
    is_made = not isinstance(parameter, UninitializedParameter)
    return is_made and parameter.requires_grad and parameter.is_leaf


def _n_elements(slot: Slot) -> int:
    """Return the size of a parameter: the smallest gradient is the cheapest to keep."""
    parameter = slot.get()
    return 0 if parameter is None else parameter.numel()
