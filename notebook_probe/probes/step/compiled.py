"""Compiled models: their calls run without hooks, except in steps that are made to run eagerly.

torch's stance holds for the whole process and is read when a compiled function is entered, so
that it is set at the end of the step before. Graphs are kept: nothing recompiles in between.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch._dynamo.eval_frame import OptimizedModule, cached_backends
from torch._dynamo.utils import counters

from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe

__all__ = [
    "EagerSteps",
    "UnseenCalls",
    "compiled_region",
    "has_compiled",
    "is_compiled",
    "n_compiled",
]

_holders: weakref.WeakSet[EagerSteps] = weakref.WeakSet()
_held: Any = None
_changing = threading.RLock()
"""Runs on several threads share the stance."""


class EagerSteps:
    """Request of one run that the coming step is run eagerly.

    Attributes
    ----------
    wanted : bool
        Probed steps shall run eagerly; off by default, as eager and compiled kernels may differ
        in the last bits.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._holds = False

    @property
    def acts(self) -> bool:
        """True if it is wanted, or a step that is held eager is to be released."""
        return self.wanted or self._holds

    def prepare(self, is_due: Callable[[], bool]) -> None:
        """Prepare the coming step, eager if something is due in it; called between two steps."""
        if self.wanted and is_due():
            self._holds = True
            _hold(self)
        else:
            self.end()

    def end(self) -> None:
        """Restore the compiled run of steps."""
        if not self._holds:
            return
        self._holds = False
        with _changing:
            if self in _holders:
                _holders.discard(self)
                if not _holders:
                    _release()


def _hold(holder: EagerSteps) -> None:
    with _changing:
        _hold_alone(holder)


def _hold_alone(holder: EagerSteps) -> None:
    global _held
    _holders.add(holder)
    if _held is not None:
        return
    try:
        held = torch.compiler.set_stance("force_eager")
    except RuntimeError:  # inside a compiled region, where the stance cannot change
        _holders.discard(holder)
        return
    if held.prev.stance == "default":
        _held = held
    else:  # the user's own stance stays
        held.__exit__(None, None, None)
        _holders.discard(holder)


def _release() -> None:
    global _held
    held, _held = _held, None
    if held is not None:
        held.__exit__(None, None, None)


def n_compiled() -> int:
    """Return a number that grows with everything that is compiled in this process.

    With ``fullgraph=True`` Dynamo counts graphs, but no frames.
    """
    # Looked up each time: a user may clear all counters, and torch then makes new ones.
    return counters["frames"]["total"] + counters["stats"]["unique_graphs"]


def has_compiled() -> bool:
    """Return whether anything has been compiled in this process."""
    return counters["frames"]["total"] > 0 or counters["stats"]["unique_graphs"] > 0


class UnseenCalls:
    """Test whether a place may have been called without its hooks.

    Parameters
    ----------
    place : str
        Path of a module.
    modules : mapping of str to nn.Module
        All of the model, by path.
    probes : sequence of Probe
        Probes of calls at the place.
    """

    def __init__(
        self, place: str, modules: Mapping[str, nn.Module], probes: Sequence[Probe]
    ) -> None:
        self._place, self._modules, self._probes = place, modules, probes

    def __call__(self, frame: StepFrame) -> bool:
        if frame.is_unseen or _is_within_compiled(self._place, self._modules):
            return True
        return has_compiled() and not any(probe.n_values for probe in self._probes)


def _is_within_compiled(place: str, modules: Mapping[str, nn.Module]) -> bool:
    """Return whether a module, or one that contains it, is compiled separately or scripted."""
    return compiled_region(place, modules) is not None


def compiled_region(place: str, modules: Mapping[str, nn.Module]) -> str | None:
    """Return the path of the part in which a module is compiled; None where there is none.

    Parameters
    ----------
    place : str
        Path of a module.
    modules : mapping of str to nn.Module
        All of the model, by path.
    """
    path = place
    while True:
        module = modules.get(path)
        if isinstance(module, OptimizedModule | torch.jit.ScriptModule):
            if path != place:  # its own hooks run
                return path
        elif module is not None and module._compiled_call_impl is not None:
            return path
        if not path:
            return None
        path = path.rpartition(".")[0]


def is_compiled(model: nn.Module) -> bool:
    """Return whether the model, or a part of it, is called in compiled form.

    Looks for the wrappers that ``torch.compile`` has made: they leave no trace in the model. That
    goes through all there is in memory, and only where ``torch.compile`` was ever called.
    """
    modules = [*model.modules()]
    if any(module._compiled_call_impl is not None for module in modules):
        return True
    if not (has_compiled() or any(cached_backends.values())):
        return False
    wrapped = {id(module) for module in modules}
    # Each object refers to its type. Asking for the referrers of the modules instead would compare
    # everything in memory with each of them: seconds, for a thousand modules.
    wrappers = (one for one in gc.get_referrers(OptimizedModule) if type(one) is OptimizedModule)
    return any(id(wrapper._modules.get("_orig_mod")) in wrapped for wrapper in wrappers)
