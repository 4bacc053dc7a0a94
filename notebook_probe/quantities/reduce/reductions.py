"""Parts of a summary feature, an open set, and the reductions behind them.

A reduction reads a tensor once and returns a state that merges exactly over the calls, tensors and
micro-batches of a step. It serves one part or several: ``output_sumsq`` and ``output_moments`` are
parts of one `Stat`, measured in one pass. Values that follow from a state alone, such as
eigenvalues of a covariance, are `Derived`: computed once, when the step's states are pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from torch import Tensor, nn

from notebook_probe.errors import QuantityError
from notebook_probe.quantities.reduce.arrays import Floats
from notebook_probe.quantities.reduce.cost import Cost
from notebook_probe.registry import Registry

__all__ = [
    "Derived",
    "Measure",
    "MeasureArrays",
    "Part",
    "Reduction",
    "State",
    "Traced",
    "derive",
    "measuring",
    "parts",
    "reduction",
]


class State(Protocol):
    """Measurement of one tensor or, merged, of many."""

    def merge(self, other: Self) -> Self:
        """Return the state of both together, as if all elements (or rows) were in one tensor."""


Measure: TypeAlias = Callable[[Any, nn.Module | None, frozenset[str]], Any]
"""``measure(tensor, module, wanted) -> State``; of an attention, its scores for a tensor."""

MeasureAll: TypeAlias = Callable[[Sequence[Tensor], frozenset[str]], list[Any]]
"""``batched(tensors, wanted) -> [State, ...]``, one of each parameter's tensor."""

MeasureArrays: TypeAlias = Callable[[Sequence[Floats], frozenset[str]], list[Any]]
"""``of_arrays(arrays, wanted) -> [State, ...]``, one of each flat array."""

Misfit: TypeAlias = Callable[[nn.Module], str]
"""``misfit(module) -> str``, a predicate in words; empty for a module that has what is needed."""

M = TypeVar("M", bound=Measure)


@dataclass(frozen=True, slots=True)
class Traced:
    """Way to read a tensor inside a compiled graph: sums there, and a state of them later."""

    sums: Callable[[Tensor, nn.Module | None, frozenset[str]], Tensor]
    """``sums(tensor, module, wanted)``, float64 of any shape, by operations that torch traces."""
    state: Callable[[Tensor, int, frozenset[str]], Any]
    """``state(sums, n, wanted) -> State`` of a tensor of ``n`` elements; the sums are flat."""
    of_numbers: Callable[[Sequence[float], int, frozenset[str]], Any] | None = None
    """Function that does what ``state`` does with sums on the host, if they are a few numbers."""


def _fits(module: nn.Module) -> str:
    return ""


@dataclass(frozen=True, slots=True, repr=False)
class Reduction:
    """Way to read a tensor; made by `reduction`."""

    parts: tuple[str, ...]
    """Parts it measures: feature ``<tensor>_<part>`` hands its state to a quantity."""
    measure: Measure
    first_only: bool = False
    """True to take the first floating-point tensor of a call, not all."""
    batched: MeasureAll | None = None
    """Function that measures many tensors in less time than one by one."""
    of_arrays: MeasureArrays | None = None
    """Function that does so with flat float32 arrays on the host, in place of tensors."""
    cost: Cost = "scalar"
    """Cost in addition to reading the tensor."""
    misfit: Misfit = _fits
    """Check of what a module lacks, so that no probe of it is ever attached."""
    finish: Callable[[Any], Any] | None = None
    """Function from the pooled state to what a quantity receives; None for the state itself."""
    of_copies: frozenset[str] = frozenset()
    """Parts that take so much longer than a copy that they are measured of one, later."""
    traced: Traced | None = None
    """Way to measure it inside a compiled graph; None where there is none."""

    def __repr__(self) -> str:
        return f"<reduction {', '.join(self.parts)} of {self.home}>"

    @property
    def home(self) -> str:
        """Location of its function."""
        return _home(self.measure)

    def measure_all(self, tensors: Sequence[Tensor], wanted: frozenset[str]) -> list[Any]:
        """Return the state of each of some parameters' tensors."""
        if self.batched is not None:
            return self.batched(tensors, wanted)
        return [self.measure(tensor, None, wanted) for tensor in tensors]


@dataclass(frozen=True, slots=True, repr=False)
class Derived:
    """Part derived from other parts of the same tensor, once they are pooled."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]
    """Names of the parts it is given, in this order."""
    cost: Cost = "scalar"

    def __repr__(self) -> str:
        return f"<reduction {self.name} of {self.home}>"

    @property
    def home(self) -> str:
        """Location of its function."""
        return _home(self.function)

    def misfit(self, module: nn.Module) -> str:
        """Describe what a module lacks for the parts it is made of."""
        return next(filter(None, (parts[need].misfit(module) for need in self.needs)), "")


Part: TypeAlias = "Reduction | Derived"


def _same(old: Part, new: Part) -> bool:
    """Return whether a cell was run twice, as opposed to a second part of the same name."""
    # In a notebook, a changed cell replaces what an earlier one defined.
    modules = {one.home.partition(":")[0] for one in (old, new)}
    return old.home == new.home or modules == {"__main__"}


def _home(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', repr(function))}"


parts: Registry[Part] = Registry("reduction", "notebook_probe.parts", _same)
"""Registry of every part, with the reduction that measures it or the parts it is derived from."""


def measuring(name: str) -> Reduction:
    """Return the reduction of a part that is measured, and raise for a derived one.

    >>> measuring("spectrum").first_only
    True
    """
    part = parts[name]
    if isinstance(part, Derived):
        raise QuantityError(f"{part!r} is worked out of {', '.join(part.needs)}")
    return part


def derive(made: Derived) -> None:
    """Register a part that is derived from other parts.

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
    """Return the way from ``needs`` back to ``name``; empty where there is none."""
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
    of_arrays: MeasureArrays | None = None,
    cost: Cost = "scalar",
    misfit: Misfit = _fits,
    of_copies: Collection[str] = (),
    traced: Traced | None = None,
) -> Callable[[M], M]:
    """Register the decorated function as what measures the parts ``names``, and trust it.

    `notebook_probe.reduction` is for functions of users who do not know what follows.

    The function is given a tensor, the module where it was read (None for a parameter's own
    tensors) and those of its parts that some quantity wants. It keeps no tensor it was given, and
    draws no random number of torch's. ``cost`` is its class where it is more than one pass;
    ``misfit`` says why some module has nothing to measure, such as ``"keeps no running mean"``.
    Parts ``of_copies`` are expensive: where one of them is wanted of large parameters another
    thread may call the function later, with copies. ``traced`` reads it in a compiled graph.

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
        made = Reduction(
            names,
            measure,
            first_only=first_only,
            batched=batched,
            of_arrays=of_arrays,
            cost=cost,
            misfit=misfit,
            of_copies=apart,
            traced=traced,
        )
        for name in names:
            parts.add(name, made)
        return measure

    return register
