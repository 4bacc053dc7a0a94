"""Passes of ``backward()``, noticed where torch begins them, whatever code called it.

``Tensor.backward`` and ``torch.autograd.backward`` come down to one function, which torch looks up
in a module each time. While there is a listener, it is replaced by ours. The two that users call
are unchanged, since subclasses of tensors and compilers know them by identity.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from math import inf
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor
from torch._C import _functorch
from torch._dynamo.decorators import skip

from notebook_probe.probes.loss.kept_calls import KeptCall
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.quantities.reduce.arrays import local
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["BackwardListener", "LossChecker", "check_losses", "listen"]

ENGINE = "_engine_run_backward"
_function_modes = torch._C._len_torch_function_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_task, _tracing, _cuda = torch._C._current_graph_task_id, torch._C._get_tracing_state, torch.cuda
_level = _functorch.maybe_current_level
_compiling = getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", None)
"""Return what compiles the functions that are called now; None where nothing does."""

LOWEST = -inf
OUTSIDE = -1
"""Number that torch gives for the current backward outside of any."""


class BackwardListener(Protocol):
    """Protocol of a listener to passes that accumulate, and to what they are called on."""

    @property
    def listens(self) -> bool:
        """True if it listens; asked before anything is read."""

    def backward_begins(self, loss: Number, roots: Sequence[Any]) -> Any:
        """Handle the beginning of a pass on ``roots``; the result is passed to `backward_ends`."""

    def backward_ends(self, begun: Any, since: float, *, has_come_through: bool) -> None:
        """Handle the end of a pass, which may have raised.

        The time between ``since`` and the end of this call is the cost of listening.
        """


class UsualLosses(Protocol):
    """Protocol of what is known of earlier losses."""

    highest: float
    """Loss from which on one is unusual; infinite if all that are finite are usual."""


class LossChecker(Protocol):
    """Protocol of an object that keeps calls of a model until their loss is known to be finite.

    A run checks losses; probes know no run.
    """

    calls: dict[int, list[KeptCall]]
    """Kept calls of each thread."""

    @property
    def usual(self) -> UsualLosses:
        """Known losses; a plain attribute, as it is read at each step."""

    def is_unusual(self, loss: Tensor, calls: list[KeptCall]) -> None:
        """Handle a loss that is not finite, or high, before its backward.

        ``calls`` are those of this thread.
        """


class Standing(NamedTuple):
    """Replacement of a function of torch, which other code's may cover, and the original."""

    ours: Callable[..., Any]
    original: Callable[..., Any]


Told: TypeAlias = Sequence[tuple[BackwardListener, Any]]
_NOBODY: Told = ()


class _Listening:
    """Listeners of one kind, referenced weakly in a tuple that is replaced rather than changed."""

    def __init__(self) -> None:
        self.references: tuple[weakref.ref[Any], ...] = ()


_listeners, _checkers = _Listening(), _Listening()
_lock = threading.RLock()
_standing: Standing | None = None


def listen(listener: BackwardListener) -> Callable[[], None]:
    """Notify ``listener`` of every pass from now on, and return a function to stop it."""
    return _join(_listeners, listener)


def check_losses(checker: LossChecker) -> Callable[[], None]:
    """Check the losses that are on the host from now on, and return a function to stop it."""
    return _join(_checkers, checker)


def _join(listening: _Listening, one: object) -> Callable[[], None]:
    reference = weakref.ref(one)
    _replace(listening, add=(reference,))
    return lambda: _replace(listening, drop=reference)


def _replace(
    listening: _Listening,
    add: tuple[weakref.ref[Any], ...] = (),
    drop: weakref.ref[Any] | None = None,
) -> None:
    with _lock, uninterrupted:
        had = bool(_listeners.references or _checkers.references)
        kept = (ref for ref in listening.references if ref is not drop and ref() is not None)
        listening.references = (*kept, *add)
        has = bool(_listeners.references or _checkers.references)
        if has and not had:
            _stand_in()
        elif had and not has:
            _step_aside()


def _stand_in() -> None:
    global _standing
    original = getattr(torch.autograd, ENGINE, None)
    if original is not None:  # else it is a torch to come, and no loss is found
        _standing = Standing(_telling(original), original)
        setattr(torch.autograd, ENGINE, _standing.ours)


def _step_aside() -> None:
    """Restore torch's own function, unless other code's covers ours: then ours stays."""
    global _standing
    before, _standing = _standing, None
    if before is not None and getattr(torch.autograd, ENGINE, None) is before.ours:
        setattr(torch.autograd, ENGINE, before.original)


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``original`` so that listeners are notified before and after, unless out of use.

    The function runs at each step, so that it reads a usual loss itself.
    """

    def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
        now = _standing
        if now is None or now.ours is not ours or not kwargs.get("accumulate_grad"):
            return original(roots, *args, **kwargs)
        if _compiling is not None and _compiling() is not None:
            return untraced(roots, *args, **kwargs)
        begun, value = time.perf_counter(), None
        root = roots[0]
        if (
            type(root) is Tensor
            and root.is_cpu
            and root.numel() == 1
            and not (_function_modes() or _dispatch_modes())
        ):
            value = root.item()
            value = value if type(value) is float else None  # a complex one is no loss
            for reference in _checkers.references:
                if (checker := reference()) is not None and checker.calls:
                    calls = checker.calls.pop(threading.get_ident(), None)
                    # NaN is below nothing.
                    if calls and value is not None and not LOWEST < value < checker.usual.highest:
                        checker.is_unusual(root, calls)
        listener, n_listeners = None, 0
        for reference in _listeners.references:
            if (one := reference()) is not None and one.listens:
                listener, n_listeners = one, n_listeners + 1
        if listener is None:
            return original(roots, *args, **kwargs)
        is_usual = value is not None and n_listeners == len(roots) == 1 and not _cuda._initialized
        if not is_usual or _task() != OUTSIDE or _level() is not None or _tracing() is not None:
            return _run_told(original, begun, roots, *args, **kwargs)
        try:
            gradient = args[0][0]
            loss = value if gradient is None else value * gradient.item()
            its = listener.backward_begins(loss, roots)
        except Exception:  # whatever a tensor is, its backward runs
            return original(roots, *args, **kwargs)
        spent = time.perf_counter() - begun
        try:
            result = original(roots, *args, **kwargs)
        except BaseException:
            _end([(listener, its)], spent, has_come_through=False)
            raise
        try:
            since = time.perf_counter() - spent
            listener.backward_ends(its, since, has_come_through=True)
        except Exception:  # as above
            return result
        return result

    # Else it would be compiled where the step is that calls it. What torch disables costs as much
    # as all that is done here, so that only a step that is compiled goes through it.
    untraced = torch.compiler.disable(run_backward)
    skip(run_backward)
    ours: Callable[..., Any] = untraced if _compiling is None else run_backward
    return wraps(original, updated=())(ours)


def _run_told(
    original: Callable[..., Any], begun: float, roots: Sequence[Any], *args: Any, **kwargs: Any
) -> Any:
    """Run a pass with several roots or listeners, or with an unusual loss."""
    told = _begin(roots, args[0])
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


def _begin(roots: Sequence[Any], gradients: Sequence[Any]) -> Told:
    """Notify the listeners, except of passes within passes, as a checkpoint's, or in tracing."""
    if _task() != OUTSIDE or is_traced():
        return _NOBODY
    told: list[tuple[BackwardListener, Any]] = []
    try:
        loss = _loss(roots, gradients)
        for reference in _listeners.references if loss is not None else ():
            one = reference()
            if one is not None and one.listens and loss is not None:
                told.append((one, one.backward_begins(loss, roots)))
        return told
    except Exception:  # whatever a tensor is, its backward runs
        return _NOBODY


def _end(told: Told, spent: float, *, has_come_through: bool) -> None:
    try:
        share = spent / len(told)
        for listener, its in told:
            since = time.perf_counter() - share
            listener.backward_ends(its, since, has_come_through=has_come_through)
    except Exception:  # as above
        return


def _loss(roots: Sequence[Any], gradients: Sequence[Any]) -> Number | None:
    """Return what is differentiated: the sum of each root times the gradient given for it.

    That gradient is 1 by default. A tensor with several elements is no loss.
    """
    total: Number | None = None
    for root, gradient in zip(roots, gradients, strict=True):
        if isinstance(root, Tensor) and root.numel() == 1 and not root.is_complex():
            part = _weighted(root, gradient)
            total = part if total is None else total + part
    return total


def _weighted(root: Tensor, gradient: Tensor | None) -> Number:
    """Return a float on the host; else a new tensor on its device, as the loop may overwrite it."""
    if type(root) is Tensor and root.is_cpu and not _has_modes():
        return root.item() if gradient is None else root.item() * gradient.item()
    found: list[Number] = []
    with torch._C.DisableTorchFunction():  # so that no mode of other code sees our reading
        plain_mode(_read, root, gradient, found)
    return found[0]


def _has_modes() -> bool:
    return _function_modes() > 0 or _dispatch_modes() > 0


def _read(root: Tensor, gradient: Tensor | None, found: list[Number]) -> None:
    if root.is_cuda and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("what is captured has no value yet")
    value = local(root.detach())
    if gradient is not None:
        value = value * local(gradient.detach())
    value = value.to(torch.float32, copy=gradient is None).reshape(())
    found.append(value.item() if value.is_cpu else value)
