"""Scalars that share one array, each viewed as a quantity of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from notebook_probe.record.format.lookup import columns, quantity_place
from notebook_probe.record.format.schema import LOGGED_BY, VALUE, module_label
from notebook_probe.record.format.source import (
    ROOT,
    ChunkGrid,
    Floats,
    LevelView,
    Variable,
)
from notebook_probe.record.views.wrapped import WrappedLevel, WrappedStream

__all__ = ["ByName"]


class ByName(WrappedStream):
    """A StreamView with a quantity for each column of ``stream``, at the root module."""

    @property
    def modules(self) -> tuple[str, ...]:
        return (ROOT,)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return _quantities(self._stream.modules)

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return {size: _NamedLevel(level) for size, level in self._stream.levels.items()}

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        quantity_place(self.name, _places(self._stream.modules), quantity)
        places = columns(self.name, {ROOT: 0}, [ROOT] if modules is None else modules)
        # The same column for each requested module, which can only be the root.
        return self._stream.values(VALUE, start, stop, [quantity])[:, np.array(places, np.intp) * 0]

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return self._stream.chunk_grid(VALUE)


@lru_cache(maxsize=16)  # of the same names at every look
def _quantities(names: tuple[str, ...]) -> tuple[Variable, ...]:
    return tuple(Variable(name, "1", LOGGED_BY) for name in names)


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


class _NamedLevel(WrappedLevel):
    """A level with a quantity for each column, at the root module."""

    def has(self, quantity: str, module: str) -> bool:
        return module_label(module) == ROOT and self._level.has(VALUE, quantity)

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> Mapping[str, Floats]:
        return self._level.reduced(VALUE, [quantity for _ in modules], start, stop)
