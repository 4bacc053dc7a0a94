"""Values that a model's code collects, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from notebook_probe.quantities.define.numbers import COMBINE
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["Collected"]


@dataclass(slots=True)
class Collected:
    """The values of one name at one place in one step."""

    combine: Combine
    values: list[Number] = field(default_factory=list)

    def copy(self) -> Collected:
        """Return a copy of the present state."""
        return Collected(self.combine, [*self.values])

    @property
    def value(self) -> float:
        """One number; once the values are on the host."""
        return COMBINE[self.combine]([float(value) for value in self.values])
