"""Numbers of a measured step, by module and name, and those that are not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from weakref import WeakKeyDictionary

from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.step.measured import POOLED, Columns, MeasuredStep, StreamValues
from notebook_probe.quantities import quantities
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.views.own_names import OwnNames

__all__ = ["Number", "StepNumbers"]

OUTPUTS_AND_GRADIENTS = frozenset({"output", "grad", "grad_raw", "grad_output", "grad_input"})
WHOLE = frozenset({"sumsq", "largest"})
"""Summaries that are finite exactly where all elements are; a mean of nothing is NaN, too."""
COUNT = "nonfinite"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a step."""

    module: str
    name: str
    value: float


@dataclass(frozen=True, slots=True)
class _Index:
    """Index of a stream's columns."""

    columns: dict[tuple[str, str], int]
    telling: tuple[int, ...]
    """Columns that show whether outputs and gradients are finite."""


class StepNumbers:
    """Numbers in measured steps; their positions are computed once per set of due probes.

    Parameters
    ----------
    own_names : callable
        Gives the names under which logged series are read whose stored name another series has.
    """

    def __init__(self, own_names: Callable[[], OwnNames]) -> None:
        self._own_names = own_names
        # Columns live as long as their set of due probes; an index must not outlive it.
        self._indices: WeakKeyDictionary[Columns, _Index] = WeakKeyDictionary()

    def of(self, step: MeasuredStep, module: str, name: str) -> float | None:
        """Return the number of the series with this name; None if the step has none."""
        logged = self._logged(step).get(name) if module == ROOT else None
        if logged is not None:
            return float(logged)
        if module == ROOT and name == BACKWARD_LOSS:
            return step.loss
        for values in step.streams:
            column = self._index(values.columns).columns.get((module, name))
            value = None if column is None else _at(values, column)
            if value is not None:
                return value
        place = "" if module == ROOT else module
        collected = step.named.get((place, name))
        return None if collected is None else float(collected)

    def not_finite(self, step: MeasuredStep) -> Iterator[Number]:
        """Yield logged scalars, losses, outputs and gradients that are NaN or infinite."""
        for name, value in self._logged(step).items():
            if not math.isfinite(value):
                yield Number(ROOT, name, float(value))
        if step.loss is not None and not math.isfinite(step.loss):
            yield Number(ROOT, BACKWARD_LOSS, step.loss)
        for values in step.streams:
            for column in self._index(values.columns).telling:
                number = _at(values, column)
                variable, place = values.columns.cells[column]
                if number is not None and not _is_fine(variable, number):
                    yield Number(standard_place(place), variable, number)

    def _logged(self, step: MeasuredStep) -> Mapping[str, float]:
        """Return what the loop has logged of a step, by the names under which it is read."""
        if not step.logged:
            return step.logged
        own = self._own_names()
        if not own:
            return step.logged
        return {own.get((step.of_state, name), name): one for name, one in step.logged.items()}

    def _index(self, columns: Columns) -> _Index:
        known = self._indices.get(columns)
        if known is None:
            # Vectors have no name for a single number.
            cells = columns.cells if columns.axis is None else ()
            names = [(standard_place(place), variable) for variable, place in cells]
            telling = [i for i, (_, variable) in enumerate(names) if _part(variable)]
            index = {name: column for column, name in enumerate(names)}
            known = self._indices[columns] = _Index(index, tuple(telling))
        return known


def _at(values: StreamValues, column: int) -> float | None:
    if values.is_whole:
        return float(values.numbers[column])
    place = (column, POOLED)
    return float(values.numbers[values.places.index(place)]) if place in values.places else None


def _is_fine(variable: str, value: float) -> bool:
    return value <= 0 if _part(variable) == COUNT else math.isfinite(value)


@cache
def _part(variable: str) -> str:
    """Return a quantity's only summary, if that shows whether a tensor is finite."""
    features = quantities[variable].features if variable in quantities else ()
    if len(features) != 1 or features[0].each or features[0].tensor not in OUTPUTS_AND_GRADIENTS:
        return ""
    part = features[0].part
    return part if part == COUNT or part in WHOLE else ""
