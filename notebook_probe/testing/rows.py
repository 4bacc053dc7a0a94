"""Series in memory, for testing rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.source import Floats, LevelView, Steps, Variable

__all__ = ["StreamInMemory", "Tables", "filled"]

Tables: TypeAlias = Mapping[str, npt.ArrayLike]
"""Values by quantity, of one module, (row,), or of several, (row, module)."""


def filled(tables: Tables) -> dict[str, Floats]:
    """All as (row, module); NaN counts as measured."""
    made = {}
    for name, table in tables.items():
        values = as_measured(table)
        made[name] = values[:, None] if values.ndim == 1 else values
    return made


@dataclass
class StreamInMemory:
    """A stream of a record that is only in memory; `n_rows` of it can be read."""

    tables: Mapping[str, Floats]
    modules: tuple[str, ...]
    n_rows: int
    name: str = "every_1"
    levels: Mapping[int, LevelView] = field(default_factory=dict)
    version: tuple[object, ...] = ()

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(map(Variable, self.tables))

    @property
    def source(self) -> Any:
        """A source of which this is the only stream."""
        return SimpleNamespace(streams={self.name: self}, modules=(), events=(), recorded_name=str)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return np.arange(self.n_rows, dtype=np.int64)[start:stop]

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        return self.steps(start, stop)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        columns = [self.modules.index(one) for one in modules or self.modules]
        return self.tables[quantity][: self.n_rows][start:stop][:, columns]
