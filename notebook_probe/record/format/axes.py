"""The columns of a stream: which quantities, at which modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from notebook_probe.errors import QuantityError
from notebook_probe.record.format.schema import check_quantity, module_label
from notebook_probe.record.format.source import Variable

__all__ = ["Axes"]


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a row at one moment; replaced as a whole when they grow."""

    variables: tuple[Variable, ...] = ()
    modules: tuple[str, ...] = ()
    variable_index: Mapping[str, int] = field(default_factory=dict)
    module_index: Mapping[str, int] = field(default_factory=dict)
    cell: tuple[int, ...] = ()
    """Shape of one value: empty for numbers, (size of the axis,) for vectors."""

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.variables), len(self.modules), *self.cell

    def extended(self, modules: Sequence[str], variables: Sequence[Variable]) -> Axes:
        """Return the axes with new entries at their ends; the same object if there are none."""
        labels = [module_label(module) for module in modules]
        if all(label in self.module_index for label in labels) and all(
            variable.name in self.variable_index for variable in variables
        ):
            return self
        known = {variable.name: variable for variable in self.variables}
        for variable in variables:
            _check(variable.name, known)
            known.setdefault(variable.name, variable)
        module_axis = tuple(dict.fromkeys([*self.modules, *labels]))
        return Axes(
            tuple(known.values()),
            module_axis,
            {name: place for place, name in enumerate(known)},
            {label: place for place, label in enumerate(module_axis)},
            self.cell,
        )


def _check(quantity: str, known: Iterable[str]) -> None:
    check_quantity(quantity)
    folded = quantity.casefold()
    for name in known:
        if name != quantity and name.casefold() == folded:
            raise QuantityError(
                f"quantity {quantity!r} differs from {name!r} by case only, "
                f"and some file systems would mix their arrays"
            )
