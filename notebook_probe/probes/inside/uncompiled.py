"""Functions that Dynamo does not compile at their own calls, where no graph has them.

Code that Dynamo cannot compile, such as a forward with an LSTM, runs as Python, and Dynamo tries
each function that is called from there. Where it traces a call it traces what is named here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any

from torch import nn
from torch._C._dynamo import eval_frame
from torch._dynamo.utils import nnmodule_has_hooks

from notebook_probe.probes.inside.traced import can_trace
from notebook_probe.uninterrupted import whole

__all__ = ["UnhookedForwards", "is_of_torch", "run_uncompiled"]

_n_users: Counter[CodeType] = Counter()
"""Number of runs that leave a forward uncompiled."""


def run_uncompiled(*functions: Callable[..., Any]) -> None:
    """Run functions, and all that they call, uncompiled."""
    if can_trace():
        actions = eval_frame._FrameAction
        for function in functions:
            _act(function.__code__, actions.SKIP, actions.SKIP)


class UnhookedForwards:
    """Forwards of torch's modules that Dynamo leaves uncompiled, as if they had no hooks.

    Because of a hook it would compile each by itself: time for each size of layer, and other
    kernels than those of an unwatched model.
    """

    def __init__(self) -> None:
        self._codes = set[CodeType]()

    def add(self, module: nn.Module) -> None:
        """Leave the forward of a module uncompiled, unless others have put hooks on it.

        Parameters
        ----------
        module : nn.Module
            Before it has hooks of ours.
        """
        if not (can_trace() and is_of_torch(module)):
            return
        code = type(module).forward.__code__
        if code not in self._codes and not nnmodule_has_hooks(module, check_forward_hooks=True):
            self._codes.add(code)
            _n_users[code] += 1
            _act(code, eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT)

    @whole
    def clear(self) -> None:
        """Leave them to Dynamo again, except those that other runs have added."""
        _n_users.subtract(self._codes)
        for code in self._codes:
            if not _n_users[code]:
                _act(code, eval_frame._FrameAction.DEFAULT, eval_frame._FrameAction.DEFAULT)
        self._codes.clear()


def is_of_torch(module: nn.Module) -> bool:
    """Return whether Dynamo counts a module's class as torch's own.

    Examples
    --------
    >>> is_of_torch(nn.Linear(2, 2))
    True
    """
    return type(module).__module__.startswith(("torch.nn.", "torch.ao."))


def _act(code: CodeType, there: eval_frame._FrameAction, in_calls: eval_frame._FrameAction) -> None:
    """Set what Dynamo does where code is called as Python, and in what is called from there."""
    eval_frame.set_code_exec_strategy(code, eval_frame._FrameExecStrategy(there, in_calls))
