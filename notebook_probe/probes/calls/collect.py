"""`collect`: a value named inside a forward, recorded under the module that is running.

Without a watched model on the stack it does nothing, so that it can stay in a model's code.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol, get_args

import torch
from torch import nn

from notebook_probe.errors import QuantityError
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.quantities.define.numbers import read_scalar
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["Collector", "collect", "collect_for", "running"]


class Collector(Protocol):
    """Protocol of the observer of a model.

    `Observer`, which imports this module, is one.
    """

    def place_of(self, module: nn.Module) -> str | None:
        """Return the path of a module of the watched model, None for any other."""

    def collected(
        self, module: nn.Module, place: str, name: str, value: Number, combine: Combine
    ) -> None:
        """Keep a value that a forward of the module at ``place`` gave."""


_collectors: tuple[weakref.ref[Collector], ...] = ()
_changing = threading.RLock()
"""Runs begin and end on any thread, and in a garbage collector that interrupts another."""


def collect_for(collector: Collector) -> Callable[[], None]:
    """Pass to ``collector`` what its model collects, and return a function to stop it."""
    global _collectors
    reference = weakref.ref(collector)
    with _changing:
        _collectors = (*(ref for ref in _collectors if ref() is not None), reference)

    def end() -> None:
        global _collectors
        with _changing:
            _collectors = tuple(ref for ref in _collectors if ref is not reference)

    return end


def collect(name: str, value: Any, combine: Combine = "mean") -> None:
    """Record ``value`` as the series ``name`` of the module whose forward is running.

    Call it anywhere inside a forward; where nobody watches the model it does nothing.

    Parameters
    ----------
    name : str
        Becomes a variable of the record.
    value : Tensor or number
        One real number; a tensor is detached and stays on its device.
    combine : {"mean", "sum", "max", "min", "last", "rss"}
        Combination of the values of several calls in one step into one.

    Raises
    ------
    QuantityError
        For several elements, complex numbers, text, an unknown ``combine`` or an impossible name.

    Examples
    --------
    >>> class Gate(nn.Module):
    ...     def forward(self, x):
    ...         open = torch.sigmoid(x)
    ...         collect("openness", open.mean())
    ...         return open * x
    >>> Gate()(torch.zeros(2))
    tensor([0., 0.])
    """
    if torch.compiler.is_compiling() or is_traced():
        return
    if combine not in get_args(Combine):
        raise QuantityError(
            f"collect({name!r}): combine={combine!r}; allowed: {', '.join(get_args(Combine))}"
        )
    number = read_scalar(f"collect({name!r}, ...):", value)
    if not _collectors:
        return
    for collector, module, place in _watched():
        collector.collected(module, place, name, number, combine)


_CALL = nn.Module._call_impl.__code__


def running() -> Iterator[nn.Module]:
    """Yield the modules whose calls are running on this thread, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            yield frame.f_locals["self"]
        frame = frame.f_back


def _watched() -> list[tuple[Collector, nn.Module, str]]:
    """Return the innermost running module that is watched, once for each collector."""
    collectors = [collector for ref in _collectors if (collector := ref()) is not None]
    for module in running():
        places = [(collector, collector.place_of(module)) for collector in collectors]
        found = [(one, module, place) for one, place in places if place is not None]
        if found:
            return found
    return []
