"""Inputs of the model's training calls, kept by reference until their backward begins."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.loss.input_shapes import InputShapes
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["MOST_CALLS", "KeptCall", "KeptCalls"]

MOST_CALLS = 16
"""Maximum number of kept calls that wait for one backward."""

LEARNED_IN = frozenset({0, 1, 2, 10, 100, 1000, 10_000})
"""Numbers of the calls before which attributes are compared with those of the last such call."""

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
        Its arguments themselves, not copies.
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
    """

    def __init__(self) -> None:
        self.wanted = self.draws = self.learns = False
        self.by_thread: dict[int, list[KeptCall]] = {}
        self.shapes: InputShapes | None = None
        self.has_shapes = False
        self._before: Tensor | None = None
        self._n_calls = 0
        self._changing: dict[tuple[str, str], weakref.ref[nn.Module]] = {}
        self._known: dict[tuple[str, str], Any] = {}

    def keep(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], model_map: ModelMap) -> None:
        """Keep a call that begins; an argument that cannot be read ends keeping."""
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
            call = args, kwargs, tensors, versions, state, dtype, attributes
            kept = self.by_thread.setdefault(threading.get_ident(), [])
            if kept:  # its output may never be used
                kept[-1] = kept[-1].weak()
            if len(kept) < MOST_CALLS:
                kept.append(_made(KeptCall, call))
        except Exception:  # whatever a model is given, it is called
            self.wanted = False

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


def _versions(tensors: Sequence[Tensor]) -> list[int]:
    """Return the versions of tensors; those of inference have none."""
    with torch._C.DisableTorchFunctionSubclass():  # a subclass does not see us read
        return [0 if one.is_inference() else one._version for one in tensors]
