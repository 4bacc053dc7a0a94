"""What of a tensor a summary feature holds: an open set of parts, and the reductions behind them.

A reduction reads a tensor once and returns a state that merges exactly over the calls, tensors and
micro-batches of a step. It serves one part or several: ``output_sumsq`` and ``output_moments`` are
parts of one `Stat`, measured in one pass. What can be told of a state alone, such as eigenvalues of
a covariance, is `Derived`: worked out once, when the step's states are pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.cost import Cost
from notebook_probe.registry import Registry

__all__ = [
    "Derived",
    "Measure",
    "Part",
    "Reduction",
    "State",
    "derive",
    "measuring",
    "parts",
    "reduction",
]


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


@dataclass(frozen=True, slots=True, repr=False)
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
    finish: Callable[[Any], Any] | None = None
    """Makes of the pooled state what a quantity is given, where that is not the state itself."""
    of_copies: frozenset[str] = frozenset()
    """Parts that take so much longer than a copy that they are measured of one, later."""

    def __repr__(self) -> str:
        return f"<reduction {', '.join(self.parts)} of {self.home}>"

    @property
    def home(self) -> str:
        """Where its function was written."""
        return _home(self.measure)

    def measure_all(self, tensors: Sequence[Tensor], wanted: frozenset[str]) -> list[Any]:
        """The state of each of some parameters' tensors."""
        if self.batched is not None:
            return self.batched(tensors, wanted)
        return [self.measure(tensor, None, wanted) for tensor in tensors]


@dataclass(frozen=True, slots=True, repr=False)
class Derived:
    """What is worked out of other parts of the same tensor, once they are pooled."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]
    """Names of the parts it is given, in this order."""
    cost: Cost = "scalar"

    def __repr__(self) -> str:
        return f"<reduction {self.name} of {self.home}>"

    @property
    def home(self) -> str:
        """Where its function was written."""
        return _home(self.function)

    def misfit(self, module: nn.Module) -> str:
        """Tell of a module what the parts it is made of would need."""
        return next(filter(None, (parts[need].misfit(module) for need in self.needs)), "")


Part: TypeAlias = "Reduction | Derived"


def _same(old: Part, new: Part) -> bool:
    """Tell a cell that was run twice from a second part of the same name."""
    modules = {one.home.partition(":")[0] for one in (old, new)}
    return old.home == new.home or modules == {"__main__"}


def _home(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', repr(function))}"


parts: Registry[Part] = Registry("reduction", "notebook_probe.parts", _same)
"""Every part by name, with the reduction that measures it or what it is derived by."""


def measuring(name: str) -> Reduction:
    """What measures a part that is read of a tensor, and not derived.

    >>> measuring("spectrum").first_only
    True
    """
    part = parts[name]
    if isinstance(part, Derived):
        raise QuantityError(f"{part!r} is worked out of {', '.join(part.needs)}")
    return part


def derive(made: Derived) -> None:
    """Register what is worked out of other parts.

    Raises
    ------
    QuantityError
        It would need itself.

    Examples
    --------
    >>> derive(Derived("doubled", lambda spectrum: 2 * spectrum.matrix, ("spectrum",)))
    >>> parts["doubled"].needs
    ('spectrum',)
    """
    chain = _chain_to(made.name, made.needs)
    if chain:
        way = ", which needs ".join(map(repr, chain))
        raise QuantityError(
            f"reduction {made.name!r} needs {way}: a circle, which has no beginning"
        )
    parts.add(made.name, made)


def _chain_to(name: str, needs: Sequence[str]) -> tuple[str, ...]:
    """The way from ``needs`` back to ``name``; empty where there is none."""
    for need in needs:
        if need == name:
            return (name,)
        known = parts[need]
        chain = _chain_to(name, known.needs) if isinstance(known, Derived) else ()
        if chain:
            return (need, *chain)
    return ()


def reduction(
    *names: str,
    first_only: bool = False,
    batched: MeasureAll | None = None,
    cost: Cost = "scalar",
    misfit: Misfit = _fits,
    of_copies: Collection[str] = (),
) -> Callable[[M], M]:
    """Register the decorated function as what measures the parts ``names``, and trust it.

    `notebook_probe.reduction` is for functions of whoever does not know what follows.

    The function is given a tensor, the module where it was read (None for a parameter's own
    tensors) and those of its parts that some quantity wants. It keeps no tensor it was given, and
    draws no random number of torch's. ``cost`` is its class where it is more than one pass;
    ``misfit`` says why some module has nothing to measure, such as ``"keeps no running mean"``.
    Parts ``of_copies`` are dear: where one of them is wanted of large parameters another thread may
    call the function later, with copies.

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
        apart = frozenset(of_copies)
        made = Reduction(names, measure, first_only, batched, cost, misfit, of_copies=apart)
        for name in names:
            parts.add(name, made)
        return measure

    return register
