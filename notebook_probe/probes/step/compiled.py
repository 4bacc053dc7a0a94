"""Compiled models: their calls run without hooks, except in steps that are made to run eagerly.

torch's stance holds for the whole process and is read when a compiled function is entered, so
that it is set at the end of the step before. Graphs are kept: nothing recompiles in between.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._dynamo.eval_frame import cached_backends
from torch._dynamo.utils import counters

__all__ = ["EagerSteps", "has_compiled", "is_compiled"]

_holders: weakref.WeakSet[EagerSteps] = weakref.WeakSet()
_held: Any = None
_frames = counters["frames"]


class EagerSteps:
    """One run's wish that the coming step is run eagerly.

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
        """It is wanted, or a step that is held eager is to be let go."""
        return self.wanted or self._holds

    def prepare(self, is_due: Callable[[], bool]) -> None:
        """Between two steps: have the coming one run eagerly if something is due in it."""
        if self.wanted and is_due():
            self._holds = True
            _hold(self)
        else:
            self.end()

    def end(self) -> None:
        """Let steps run as they are compiled."""
        if not self._holds:
            return
        self._holds = False
        if self in _holders:
            _holders.discard(self)
            if not _holders:
                _release()


def _hold(holder: EagerSteps) -> None:
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


def has_compiled() -> bool:
    """Tell whether anything has been compiled in this process."""
    return bool(_frames["total"])


def is_compiled(model: nn.Module) -> bool:
    """Tell whether the model, or a part of it, is called in compiled form.

    Looks for who refers to the model: a wrapper made by ``torch.compile`` leaves no trace in it.
    That goes through all there is in memory, and only where ``torch.compile`` was ever called.
    """
    modules = [*model.modules()]
    if any(module._compiled_call_impl is not None for module in modules):
        return True
    if not (has_compiled() or any(cached_backends.values())):
        return False
    wrapped = {id(module) for module in modules}
    holders = (one for one in gc.get_referrers(*modules) if isinstance(one, dict))
    return any(id(holder.get("_orig_mod")) in wrapped for holder in holders)
