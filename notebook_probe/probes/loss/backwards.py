"""The passes of ``backward()``, heard of where torch begins them, whoever has called it.

``Tensor.backward`` and ``torch.autograd.backward`` come down to one function, which torch looks up
in a module each time. While anybody listens another stands there. The two that people call stay as
they are, since subclasses of tensors and compilers know them by identity.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["BackwardListener", "listen"]

ENGINE = "_engine_run_backward"
OUTSIDE = -1
"""What torch gives for the current backward outside of any."""


class BackwardListener(Protocol):
    """Whoever wants to hear of passes that accumulate, and of what they are called on."""

    @property
    def listens(self) -> bool:
        """Asked before anything is read."""

    def backward_begins(self, loss: Number) -> Any:
        """A pass begins; what is returned is given back as it ends."""

    def backward_ends(self, begun: Any, *, has_come_through: bool) -> None:
        """It is over; it may have raised."""

    def backward_took(self, seconds: float) -> None:
        """What telling of it took, before it and after: a share for each listener."""


class Standing(NamedTuple):
    """A function of ours in torch's place, which somebody else's may cover, and what was there."""

    ours: Callable[..., Any]
    original: Callable[..., Any]


Told: TypeAlias = Sequence[tuple[BackwardListener, Any]]
_NOBODY: Told = ()

_listeners: tuple[weakref.ref[BackwardListener], ...] = ()
_lock = threading.RLock()
_standing: Standing | None = None


def listen(listener: BackwardListener) -> Callable[[], None]:
    """Tell ``listener`` of every pass from now on; returns what ends it."""
    reference = weakref.ref(listener)
    _replace(add=(reference,))
    return lambda: _replace(drop=reference)


def _replace(
    add: tuple[weakref.ref[BackwardListener], ...] = (),
    drop: weakref.ref[BackwardListener] | None = None,
) -> None:
    global _listeners
    with _lock:
        kept = tuple(ref for ref in _listeners if ref is not drop and ref() is not None)
        had, _listeners = bool(_listeners), kept + add
        if not had and _listeners:
            _stand_in()
        elif had and not _listeners:
            _step_aside()


def _stand_in() -> None:
    global _standing
    original = getattr(torch.autograd, ENGINE, None)
    if original is not None:  # else it is a torch to come, and no loss is found
        _standing = Standing(_telling(original), original)
        setattr(torch.autograd, ENGINE, _standing.ours)


def _step_aside() -> None:
    """Give torch back its own, unless somebody else's function covers ours: that stays."""
    global _standing
    before, _standing = _standing, None
    if before is not None and getattr(torch.autograd, ENGINE, None) is before.ours:
        setattr(torch.autograd, ENGINE, before.original)


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    """As ``original``, and listeners are told before and after; one that was left tells nobody."""

    @wraps(original)
    def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
        begun, now, told = time.perf_counter(), _standing, _NOBODY
        if now is not None and now.ours is ours and kwargs.get("accumulate_grad"):
            told = _begin(roots, args)
        if not told:
            return original(roots, *args, **kwargs)
        spent = time.perf_counter() - begun
        try:
            result = original(roots, *args, **kwargs)
        except BaseException:
            _end(told, spent, has_come_through=False)
            raise
        _end(told, spent, has_come_through=True)
        return result

    # Else it would be compiled where the step is that calls it.
    ours: Callable[..., Any] = torch.compiler.disable(run_backward)
    return ours


def _begin(roots: Sequence[Any], args: Sequence[Any]) -> Told:
    """Tell who listens; not of passes within passes, as a checkpoint's, nor while torch traces."""
    listening = [one for ref in _listeners if (one := ref()) is not None and one.listens]
    if not listening or torch._C._current_graph_task_id() != OUTSIDE or is_traced():
        return _NOBODY
    try:
        loss = _loss(roots, args[0])
        if loss is None:
            return _NOBODY
        return [(one, one.backward_begins(loss)) for one in listening]
    except Exception:  # whatever a tensor is, its backward runs
        return _NOBODY


def _end(told: Told, spent: float, *, has_come_through: bool) -> None:
    begun = time.perf_counter()
    try:
        for listener, its in told:
            listener.backward_ends(its, has_come_through=has_come_through)
        share = (spent + time.perf_counter() - begun) / len(told)
        for listener, _ in told:
            listener.backward_took(share)
    except Exception:  # as above
        return


def _loss(roots: Sequence[Any], gradients: Sequence[Any]) -> Number | None:
    """What is differentiated, the sum of each root times the gradient that is given for it.

    That gradient is 1 unless somebody says otherwise. What has several elements is no loss.
    """
    total: Number | None = None
    for root, gradient in zip(roots, gradients, strict=True):
        if isinstance(root, Tensor) and root.numel() == 1 and not root.is_complex():
            value = _weighted(root, gradient)
            total = value if total is None else total + value
    return total


def _weighted(root: Tensor, gradient: Tensor | None) -> Number:
    """On the host a float; else a new tensor on its device, as the loop may write over the root."""
    if type(root) is Tensor and root.is_cpu and not _has_modes():
        return root.item() if gradient is None else root.item() * gradient.item()
    found: list[Number] = []
    with torch._C.DisableTorchFunction():  # nobody's mode sees us read
        plain_mode(_read, root, gradient, found)
    return found[0]


def _has_modes() -> bool:
    return torch._C._len_torch_function_stack() > 0 or torch._C._len_torch_dispatch_stack() > 0


def _read(root: Tensor, gradient: Tensor | None, found: list[Number]) -> None:
    if root.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("what is captured has no value yet")
    value = local(root.detach())
    if gradient is not None:
        value = value * local(gradient.detach())
    value = value.to(torch.float32, copy=gradient is None).reshape(())
    found.append(value.item() if value.is_cpu else value)
