"""Inputs of the model's training calls, kept by reference until their backward begins."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map_only

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.loss.input_shapes import InputShapes
from notebook_probe.probes.step.containers import copied, tensors_of

__all__ = ["MOST_CALLS", "KeptCall", "KeptCalls", "LatestCalls"]

MOST_CALLS = 16
"""Maximum number of kept calls that wait for one backward."""

MOST_STEPS, MOST_BYTES = 2, 64 * 2**20
"""Steps that training may pause after whose inputs are kept, and bytes of the inputs of one."""

LEARNED_IN = frozenset({0, 1, 2, 10, 100, 1000, 10_000})
"""Numbers of the calls before which attributes are compared with those of the last such call."""

LEAVES = (Tensor, int, float, bool, str, type(None), torch.dtype, torch.device)
"""Types of inputs that are referenced weakly, or hold no memory."""

PLAIN = frozenset({int, float, bool, str})
"""Types of attributes that are restored: holding others might hold the graph of an earlier step."""

_version = torch.Tensor._version.__get__  # type: ignore[attr-defined]
_random_state = torch.default_generator.get_state
_has_autocast = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)


class Attribute(NamedTuple):
    """Value of an attribute of a module, which is referenced weakly."""

    module: weakref.ref[nn.Module]
    name: str
    value: Any


class KeptCall(NamedTuple):
    """One call of the model, and the state in which it began.

    Attributes
    ----------
    args, kwargs
        Arguments of the call themselves, not copies.
    tensors : sequence of Tensor
        Tensors in them.
    versions : list of int
        Their versions, in which an operation in place would show.
    random : Tensor or None
        State of torch's generator; None of a model that has drawn no number so far.
    autocast : torch.dtype or None
        Type of autocast for the CPU, if it was on.
    attributes : list of Attribute
        Attributes that calls change, such as counters.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    tensors: Sequence[Tensor]
    versions: list[int]
    random: Tensor | None
    autocast: torch.dtype | None
    attributes: list[Attribute]

    @property
    def is_unchanged(self) -> bool:
        """True if no argument was written to since."""
        return self.versions == _versions(self.tensors)

    def weak(self) -> KeptCall:
        """Return the call with weak references in the place of tensors."""
        args, kwargs, tensors = tree_map_only(Tensor, weakref.ref, [*self[:3]])
        return self._replace(args=args, kwargs=kwargs, tensors=tensors)

    def strong(self) -> KeptCall | None:
        """Return the call with its tensors again; None if one of them no longer exists."""
        found = tree_map_only(weakref.ref, lambda reference: reference(), [*self[:3]])
        args, kwargs, tensors = found
        if any(tensor is None for tensor in tensors):
            return None
        return self._replace(args=args, kwargs=kwargs, tensors=tensors)

    def make_again(self, model: nn.Module) -> Any:
        """Call a model with copies of the inputs and of its buffers; return its output."""
        buffers = copied(dict(model.named_buffers()))
        return functional_call(model, buffers, copied(self.args), copied(dict(self.kwargs)))


class LatestCalls:
    """The last call of each of the last steps, with its inputs, which stay in memory.

    Attributes
    ----------
    is_awaited : bool
        Training may pause after the next step.
    is_followed : bool
        A panel shows the run.
    by_step : dict of int to KeptCall
        At most `MOST_STEPS`: on an accelerator a step is known one later.
    last : tuple of int and KeptCall, or None
        Step and weak references to the last call, while a panel shows the run.
    """

    def __init__(self) -> None:
        self.is_awaited = self.is_followed = False
        self.by_step: dict[int, KeptCall] = {}
        self.last: tuple[int, KeptCall] | None = None

    def keep(self, step: int, call: KeptCall) -> None:
        """Keep a call of this step, strongly if training may pause after it."""
        for earlier in [one for one in self.by_step if one <= step - MOST_STEPS]:
            del self.by_step[earlier]
        is_kept, self.is_awaited = self.is_awaited or step in self.by_step, False
        self.by_step.pop(step, None)
        if is_kept and sum(one.nbytes for one in call.tensors) <= MOST_BYTES:
            self.by_step[step] = call
        if self.is_followed:
            weak = _weak(call)
            self.last = None if weak is None else (step, weak)

    def last_unchanged(self) -> tuple[int, KeptCall] | None:
        """Return step and call of the last one, if its inputs still exist as they were."""
        step, weak = self.last or (-1, None)
        call = None if weak is None else weak.strong()
        return (step, call) if call is not None and call.is_unchanged else None


_made = tuple.__new__
"""Make a named tuple; its own constructor is a function in Python, which would run at each step."""


class KeptCalls:
    """Store of one model's calls by thread, each until a backward or an update has followed it.

    Attributes
    ----------
    wanted : bool
        Keep calls. False for a model on an accelerator, whose loss is known too late.
    by_thread : dict of int to list of KeptCall
        At most `MOST_CALLS` for each thread; all but the last one refer to their inputs weakly.
    draws : bool
        Keep the state of torch's generator, which takes as long as all the rest: a call of the
        model has drawn a number.
    shapes : InputShapes or None
        Shapes of the arguments of one of the calls in `LEARNED_IN`; None for others than tensors.
    has_shapes : bool
        They were looked at, though no call is kept.
    learns : bool
        A call runs at whose end `learn_draws` is to be called.
    latest : LatestCalls or None
        Calls of the last steps, while a panel shows the run or training may pause after any of
        them; None otherwise.
    """

    def __init__(self) -> None:
        self.wanted = self.draws = self.learns = False
        self.latest: LatestCalls | None = None
        self.by_thread: dict[int, list[KeptCall]] = {}
        self.shapes: InputShapes | None = None
        self.has_shapes = False
        self._before: Tensor | None = None
        self._n_calls = 0
        self._changing: dict[tuple[str, str], weakref.ref[nn.Module]] = {}
        self._known: dict[tuple[str, str], Any] = {}

    def keep(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], model_map: ModelMap
    ) -> KeptCall | None:
        """Keep a call that begins, and return it; an argument that cannot be read ends keeping."""
        try:
            # At every step: no function of ours is called where the arguments are plain tensors.
            tensors: Sequence[Tensor] = args
            is_plain = not kwargs
            for value in args:
                is_plain &= type(value) is Tensor and not value.is_inference()
            if is_plain:
                versions = [*map(_version, args)]
            else:
                tensors = tensors_of([args, kwargs])
                versions = _versions(tensors)
            state = _random_state() if self.draws else None
            if self._n_calls in LEARNED_IN:
                self._learn(model_map)
                self.shapes = InputShapes.of(args, kwargs)
                state = self._before = _random_state()
                self.learns = True
            self._n_calls += 1
            dtype = None
            if _has_autocast() and torch.is_autocast_enabled("cpu"):
                dtype = torch.get_autocast_dtype("cpu")
            attributes = self._attributes() if self._changing else []
            values = args, kwargs, tensors, versions, state, dtype, attributes
            call = _made(KeptCall, values)
            kept = self.by_thread.setdefault(threading.get_ident(), [])
            if kept:  # its output may never be used
                kept[-1] = kept[-1].weak()
            if len(kept) < MOST_CALLS:
                kept.append(call)
        except Exception:  # whatever a model is given, it is called
            self.wanted = False
            return None
        return call

    def follow(self, is_followed: bool) -> None:
        """Refer weakly to the last call from now on, as a panel shows the run, or no more."""
        self.latest = self.latest or LatestCalls()
        self.latest.is_followed, self.latest.last = is_followed, None

    def await_pause(self) -> None:
        """Keep the call of the next step until training has not paused after it."""
        self.latest = self.latest or LatestCalls()
        self.latest.is_awaited = True

    def keep_latest(
        self,
        step: int,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        call: KeptCall | None = None,
    ) -> None:
        """Keep a call if training may pause after its step, else drop those of before.

        ``call`` is what `keep` has returned for it.
        """
        latest = self.latest
        if latest is None or not (latest.is_followed or latest.is_awaited or latest.by_step):
            self.latest = None
            return
        with suppress(Exception):  # whatever a model is given, it is called
            latest.keep(step, call or _call_of(args, kwargs))

    def note_shapes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note the shapes of a call that is not kept; only once, even if nothing can be noted."""
        self.has_shapes = True
        with suppress(Exception):  # whatever a model is given, it is called
            self.shapes = InputShapes.of(args, kwargs)

    def forget_last(self) -> None:
        """Forget this thread's last call, which has raised."""
        if kept := self.by_thread.get(threading.get_ident()):
            kept.pop()

    def learn_draws(self) -> None:
        """Learn at the end of a call whether it has drawn a number."""
        before, self._before, self.learns = self._before, None, False
        self.draws |= before is not None and not torch.equal(before, _random_state())

    def _attributes(self) -> list[Attribute]:
        """Return the values of the attributes that calls change."""
        found = []
        for (_, name), reference in self._changing.items():
            module = reference()
            if module is not None and name in module.__dict__:
                found.append(Attribute(reference, name, module.__dict__[name]))
        return found

    def _learn(self, model_map: ModelMap) -> None:
        """Find the attributes that calls change: they differ from those of the last time."""
        before, self._known = self._known, {}
        for path, module in model_map.modules.items():
            for name, value in vars(module).items():
                if type(value) in PLAIN and name != "training":
                    key = path, name
                    self._known[key] = value
                    if before.get(key, value) is not value:
                        self._changing[key] = weakref.ref(module)


def _call_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> KeptCall:
    """Return a call without the state in which it began."""
    given = [*args, *kwargs.values()]
    is_plain = all(type(one) is Tensor for one in given)  # nearly always, and quickly found
    tensors = given if is_plain else tensors_of([args, kwargs])
    return KeptCall(
        args=args,
        kwargs=kwargs,
        tensors=tensors,
        versions=_versions(tensors),
        random=None,
        autocast=None,
        attributes=[],
    )


def _weak(call: KeptCall) -> KeptCall | None:
    """Return the call with weak references; None where an object would hold tensors."""
    args, kwargs, tensors = call[:3]
    given = [*args, *kwargs.values()]
    if len(given) == len(tensors) and all(map(is_, given, tensors)):
        references: Any = [*map(weakref.ref, tensors)]
        names = dict(zip(kwargs, references[len(args) :], strict=True))
        return KeptCall((*references[: len(args)],), names, references, *call[3:])
    is_open = all(isinstance(leaf, LEAVES) for leaf in tree_leaves([args, kwargs]))
    return call.weak() if is_open else None


def _versions(tensors: Sequence[Tensor]) -> list[int]:
    """Return the versions of tensors; those of inference have none."""
    with torch._C.DisableTorchFunctionSubclass():  # a subclass does not see us read
        return [0 if one.is_inference() else one._version for one in tensors]
