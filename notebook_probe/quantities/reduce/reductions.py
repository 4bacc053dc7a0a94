"""What of a tensor a summary feature holds: an open set of parts, and the reductions behind them.

A reduction reads a tensor once and returns a state that merges exactly over the calls, tensors and
micro-batches of a step. It serves one part or several: ``output_sumsq`` and ``output_moments`` are
parts of one `Stat`, measured in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from torch import Tensor, nn

from notebook_probe.quantities.reduce.cost import Cost
from notebook_probe.registry import Registry

__all__ = ["Measure", "Reduction", "State", "parts", "reduction"]


class State(Protocol):
    """What was measured of one tensor or, merged, of many."""

    def merge(self, other: Self) -> Self:
        """The state of both together, as if their elements (or rows) had come in one tensor."""


Measure: TypeAlias = Callable[[Any, nn.Module | None, frozenset[str]], Any]
"""``measure(tensor, module, wanted) -> State``; of an attention, its scores for a tensor."""

MeasureAll: TypeAlias = Callable[[Sequence[Tensor], frozenset[str]], list[Any]]
"""``batched(tensors, wanted) -> [State, ...]``, one of each parameter's tensor."""

Misfit: TypeAlias = Callable[[nn.Module], str]
"""``misfit(module) -> str``, a predicate in words; empty for a module that has what is needed."""

M = TypeVar("M", bound=Measure)


def _fits(module: nn.Module) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Reduction:
    """One way to read a tensor; made by `reduction`."""

    parts: tuple[str, ...]
    """What it measures: feature ``<tensor>_<part>`` hands its state to a quantity."""
    measure: Measure
    first_only: bool = False
    """Of a call's tensors it takes the first floating-point one, not all."""
    batched: MeasureAll | None = None
    """Measures many tensors in less time than one by one."""
    cost: Cost = "scalar"
    """What it takes besides reading the tensor."""
    misfit: Misfit = _fits
    """Tells of a module what it would need to have, so that no probe of it is ever attached."""

    def measure_all(self, tensors: Sequence[Tensor], wanted: frozenset[str]) -> list[Any]:
        """The state of each of some parameters' tensors."""
        if self.batched is not None:
            return self.batched(tensors, wanted)
        return [self.measure(tensor, None, wanted) for tensor in tensors]


def _same(old: Reduction, new: Reduction) -> bool:
    """Tell a cell that was run twice from a second part of the same name."""
    return _home(old) == _home(new)


def _home(reduction: Reduction) -> tuple[str, str]:
    measure = reduction.measure
    return measure.__module__, getattr(measure, "__qualname__", repr(measure))


parts: Registry[Reduction] = Registry("part", "notebook_probe.parts", _same)
"""Every part by name, with the reduction that measures it."""


def reduction(
    *names: str,
    first_only: bool = False,
    batched: MeasureAll | None = None,
    cost: Cost = "scalar",
    misfit: Misfit = _fits,
) -> Callable[[M], M]:
    """Register the decorated function as what measures the parts ``names``.

    The function is given a tensor, the module where it was read (None for a parameter's own
    tensors) and those of its parts that some quantity wants. It keeps no tensor it was given, and
    draws no random number of torch's. ``cost`` is its class where it is more than one pass;
    ``misfit`` says why some module has nothing to measure, such as ``"keeps no running mean"``.

    Examples
    --------
    >>> class Smallest(float):
    ...     def merge(self, other):
    ...         return Smallest(min(self, other))
    >>> @reduction("smallest")
    ... def smallest(tensor, module, wanted):
    ...     return Smallest(tensor.abs().min())
    >>> parts["smallest"].parts
    ('smallest',)
    """

    def register(measure: M) -> M:
        made = Reduction(names, measure, first_only, batched, cost, misfit)
        for name in names:
            parts.add(name, made)
        return measure

    return register
