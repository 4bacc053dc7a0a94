"""A series as a user gives it, checked and made ready to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from notebook_probe.axis import Axis
from notebook_probe.errors import QuantityError, UnknownNameError, near
from notebook_probe.record.format.kinds import NAMED, NAMED_VALUE, Kind, kind_of
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import (
    check_quantity,
    check_scalar,
    is_variable,
    module_label,
)
from notebook_probe.record.format.source import (
    ROOT,
    Floats,
    ModuleRow,
    Steps,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.views.own_names import measured_of_model
from notebook_probe.record.views.xarray_views import Snapshot

__all__ = ["CheckedSeries", "check_module", "checked_series"]


class _Source(Protocol):
    @property
    def modules(self) -> tuple[ModuleRow, ...]: ...
    @property
    def streams(self) -> Mapping[str, StreamView]: ...
    @property
    def vectors(self) -> Mapping[str, VectorView]: ...
    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True, slots=True)
class CheckedSeries:
    """One series; each step once, increasing."""

    column: str
    """A module, or the name of a scalar."""
    variable: Variable
    steps: Steps
    values: Floats
    """(row, variable=1, module=1), of vectors (..., size)"""
    kind: Kind


def checked_series(
    source: _Source,
    module: str,
    new: Variable,
    steps: npt.ArrayLike,
    values: npt.ArrayLike,
) -> CheckedSeries:
    """Check a series of a module and a quantity; of a step that comes twice the last value holds.

    ``new`` is what its quantity would be, were it not recorded yet.

    Raises
    ------
    UnknownNameError
        A module is in neither the model nor the record.
    ValueError
        For steps that are not whole numbers from 0, or not as many as values.
    QuantityError
        For values that are no real numbers, or no vectors where the quantity is one.
    """
    quantity = new.name
    is_named = module_label(module) == ROOT and _is_named(source, quantity)
    (check_scalar if is_named else check_quantity)(quantity)
    check_module(source, label := module_label(module))
    variable, axis = _variable(source, new)
    rows, table = _steps(steps), _values(quantity, values, axis)
    if len(rows) != len(table):
        raise ValueError(
            f"{len(rows)} steps and {len(table)} values of {quantity}; one value per step"
        )
    # np.unique keeps the first of equal ones: turned round, that is the last.
    distinct, places = np.unique(rows[::-1], return_index=True)
    ordered = table[::-1][places][:, None, None]
    if is_named:
        return CheckedSeries(quantity, NAMED_VALUE, distinct, ordered, NAMED)
    return CheckedSeries(label, variable, distinct, ordered, kind_of(axis))


def check_module(source: _Source, label: str) -> None:
    """Raise UnknownNameError for a module that is in neither the model nor its record."""
    if any(row.name == label for row in source.modules):
        return
    known = _known(source)
    if label not in known and not _is_parameter(source, label):
        raise UnknownNameError(
            f"no module {label!r} in the model or its record; {near(label, known)}"
        )


def _is_named(source: _Source, quantity: str) -> bool:
    """Return whether it is a scalar without an array, or one that cannot have an array."""
    now = source.snapshot()
    is_column = any(quantity in stream.modules for stream in now.named)
    is_measured = quantity in measured_of_model(now.attrs)
    return not is_variable(quantity) or (is_column and not is_measured)


def _known(source: _Source) -> list[str]:
    recorded = [name for stream in source.streams.values() for name in stream.modules]
    return [*dict.fromkeys([*(row.name for row in source.modules), *recorded])]


def _is_parameter(source: _Source, label: str) -> bool:
    """Return whether it may be a parameter of a module; their names are in no table."""
    owner = module_label(label.rpartition(".")[0])
    return any(row.name == owner and row.n_own_params for row in source.modules)


def _variable(source: _Source, new: Variable) -> tuple[Variable, Axis | None]:
    """Return the quantity as recorded already, else as given."""
    for vectors in source.vectors.values():
        for variable in vectors.variables:
            if variable.name == new.name:
                return variable, vectors.axis
    if new.name in source.snapshot().own_names.values():  # nothing is stored under this name
        return new, None
    for stream in source.streams.values():
        for variable in stream.variables:
            if variable.name == new.name:
                return variable, None
    return new, None


def _steps(steps_like: npt.ArrayLike) -> Steps:
    steps = np.atleast_1d(np.asarray(steps_like))
    if steps.ndim != 1 or (steps.size and not np.issubdtype(steps.dtype, np.integer)):
        raise ValueError(f"steps={steps_like!r}; a whole number or a list of them")
    if steps.size and steps.min() < 0:
        raise ValueError(f"step {steps.min()}; steps are counted from 0")
    return steps.astype(np.int64)


def _values(quantity: str, values_like: npt.ArrayLike, axis: Axis | None) -> Floats:
    table = np.asarray(values_like)
    cell = () if axis is None else (axis.size,)
    if table.shape[table.ndim - len(cell) :] != cell or table.ndim - len(cell) not in (0, 1):
        wanted = "a number" if axis is None else f"a vector of {axis.size} along {axis.name!r}"
        raise QuantityError(f"values of {quantity} with shape {table.shape}; {wanted} per step")
    if table.dtype.kind not in "buif":
        raise QuantityError(
            f"values of {quantity} of type {table.dtype}; real numbers are expected"
        )
    return as_measured(table.reshape(-1, *cell))
