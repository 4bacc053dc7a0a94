"""Training, evaluation or recomputation: decided at the outermost call of the watched model.

A frozen sub-module inside a training forward counts as training; a validation pass between two
steps does not count, whatever its parts do. State is assigned at entry rather than pushed, so
that an interrupted forward leaves nothing behind.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Literal, TypeAlias

import torch
from torch import nn
from torch._C import _functorch
from torch.optim import Optimizer
from torch.utils.checkpoint import CheckpointFunction

__all__ = [
    "Phase",
    "PhaseOfThread",
    "any_step_is_active",
    "aside",
    "call_is_active",
    "is_captured",
    "is_traced",
    "note_capture",
    "own_call",
    "phase_of",
    "step_is_active",
    "was_captured",
]

Phase: TypeAlias = Literal["training", "evaluation", "recomputation", "own_call"]
"""Phase of a call; ``own_call`` is one by the package, which is not recorded."""

_CALL = nn.Module._call_impl.__code__
_CHECKPOINT = CheckpointFunction.forward.__code__
_STEP_WRAPPER = Optimizer.profile_hook_step(lambda: None).__code__


def is_traced() -> bool:
    """Return whether hooks must do nothing: torch traces or transforms the model now."""
    return (
        torch._C._get_tracing_state() is not None
        or _functorch.maybe_current_level() is not None
        or (torch._C._len_torch_dispatch_stack() > 0 and _makes_no_values())
        or (torch.cuda._initialized and is_captured())
    )


def is_captured() -> bool:
    """Return whether this thread's kernels are only captured, in a CUDA graph of the user's.

    A reading made then would be repeated at each replay, into memory that is never used;
    and a copy to the host would break the capture. Where CUDA is not set up, asking may raise, and
    nothing is captured.
    """
    try:
        return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    except RuntimeError:  # in a forked child
        return False


_captured: weakref.WeakSet[nn.Module] = weakref.WeakSet()


def note_capture(model: nn.Module) -> None:
    """Remember that a call of a watched model is part of a CUDA graph, if it is."""
    if is_captured():
        _captured.add(model)


def was_captured(model: nn.Module | None) -> bool:
    """Return whether a CUDA graph holds a call of the model, whose replays run no hooks."""
    return model is not None and model in _captured


def _makes_no_values() -> bool:
    """Return whether a mode is active in which tensors are fake, or operations only captured."""
    keys = torch._C._TorchDispatchModeKey
    modes = (torch._C._get_dispatch_mode(key) for key in (keys.FAKE, keys.PROXY))
    return any(mode is not None for mode in modes)


def phase_of(module: nn.Module) -> Phase:
    """Return the phase of a call that begins at ``module``, from its mode and torch's."""
    if aside.now:
        return "own_call"
    if torch._C._current_graph_task_id() != -1:  # a checkpoint recomputes inside a backward
        return "recomputation"
    if not module.training or torch.is_inference_mode_enabled():
        return "evaluation"
    return "training" if torch.is_grad_enabled() or _is_checkpointed() else "evaluation"


def _is_checkpointed() -> bool:
    """Return a reentrant checkpoint runs its training forward without gradients."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _CHECKPOINT:
        frame = frame.f_back
    return frame is not None


class _Aside(threading.local):
    """Flag whether this thread's calls of any watched model are our own."""

    now = False


aside = _Aside()
_phases: weakref.WeakSet[PhaseOfThread] = weakref.WeakSet()
_joining = threading.RLock()  # a garbage collector may end a run in between


@contextmanager
def own_call() -> Iterator[None]:
    """Exempt the calls inside from every run: no model called here is trained or evaluated."""
    with _joining:
        every = [*_phases]
    phases = [(phase, phase.now, [*phase.outer]) for phase in every]
    before, aside.now = aside.now, True
    for phase, _, _ in phases:
        phase.now = "own_call"
    try:
        yield
    finally:
        aside.now = before
        for phase, now, outer in phases:  # an interrupt runs no forward hook
            phase.now, phase.outer = now, outer


class PhaseOfThread(threading.local):
    """The phase of the outermost call on this thread; None outside of any."""

    def __init__(self) -> None:
        with _joining:
            _phases.add(self)
        self.now: Phase | None = None
        self.is_past = False
        """Calls on this thread are of an earlier state of the model: they are evaluations all."""
        self.outer: list[Phase | None] = []

    def enter(self, root: nn.Module) -> bool:
        """Begin a call of the root; True when it is the outermost one."""
        outermost = self.now is None or not call_is_active(root, skip=1)
        if outermost:
            self.outer.clear()
        else:
            self.outer.append(self.now)
        self.now = self.of(root)
        return outermost

    def of(self, module: nn.Module) -> Phase:
        """Return the phase of a call that begins at ``module`` on this thread."""
        return "evaluation" if self.is_past and not aside.now else phase_of(module)

    def left(self, root: nn.Module) -> bool:
        """Return whether the root's call is over after all; an interrupt runs no forward hook."""
        over = not call_is_active(root)
        if over:
            self.now = None
            self.outer.clear()
        return over

    def leave(self) -> None:
        """End a call of the root."""
        self.now = self.outer.pop() if self.outer else None


def call_is_active(module: nn.Module, skip: int = 0) -> bool:
    """Return whether a call of ``module`` is on this stack, apart from ``skip`` inner ones."""
    return _frame_is_active(_CALL, module, skip)


def step_is_active(optimizer: Optimizer, skip: int = 0) -> bool:
    """Return whether ``optimizer`` steps on this stack, apart from ``skip`` inner such frames."""
    return _frame_is_active(_STEP_WRAPPER, optimizer, skip)


def any_step_is_active(skip: int) -> bool:
    """Return whether any optimizer steps on this stack, apart from ``skip`` inner such frames."""
    return _frame_is_active(_STEP_WRAPPER, None, skip)


def _frame_is_active(code: CodeType, owner: object | None, skip: int = 0) -> bool:
    """Return whether a frame of ``code`` whose ``self`` is ``owner``, or any, is on this stack.

    ``skip`` such frames, the innermost ones, are the caller's own and do not count. Asked only
    where a call seems nested: a depth counter would be wrong for ever after one exception.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code and (owner is None or _self_of(frame) is owner):
            if skip == 0:
                return True
            skip -= 1
        frame = frame.f_back
    return False


def _self_of(frame: FrameType) -> object:
    return frame.f_locals.get("self")
