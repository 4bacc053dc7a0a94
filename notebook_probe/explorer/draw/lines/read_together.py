"""A stream read for many series at once: a chunk holds many columns, and is opened once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notebook_probe.record.format.source import Floats, LevelView, Steps, StreamView
from notebook_probe.record.views.wrapped import WrappedStream

__all__ = ["ReadTogether"]

MOST_VALUES = 2**24
"""More are read for one series at a time: 64 MB are kept for the life of a frame."""

Wanted = Mapping[str, Sequence[str]]
"""Quantity to the modules whose series are drawn."""


class ReadTogether(WrappedStream):
    """A frozen view of a stream that reads all wanted series at once.

    Parameters
    ----------
    stream : StreamView
    wanted : mapping of str to sequence of str
        Quantity to modules, all of which the stream has.
    """

    def __init__(self, stream: StreamView, wanted: Wanted) -> None:
        super().__init__(stream)
        self._wanted = wanted
        self._n_rows = stream.n_rows
        self._levels: Mapping[int, LevelView] = {
            size: _ReadLevel(level, wanted) for size, level in stream.levels.items()
        }
        # Kept for the life of one frame only, as this view is frozen.
        self._steps: dict[tuple[int, int | None], Steps] = {}
        self._values: dict[tuple[str, int, int], Floats] = {}

    @property
    def n_rows(self) -> int:
        return self._n_rows

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return self._levels

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        if (start, stop) not in self._steps:
            self._steps[start, stop] = self._stream.steps(start, stop)
        return self._steps[start, stop]

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        wanted = self._wanted.get(quantity, ())
        stop = self.n_rows if stop is None else stop
        is_too_much = (stop - start) * len(wanted) > MOST_VALUES
        if modules is None or is_too_much or not {*modules} <= {*wanted}:
            return self._stream.values(quantity, start, stop, modules)
        key = quantity, start, stop
        if key not in self._values:
            self._values[key] = self._stream.values(quantity, start, stop, wanted)
        return self._values[key][:, [wanted.index(module) for module in modules]]


class _ReadLevel:
    def __init__(self, level: LevelView, wanted: Wanted) -> None:
        self._level, self._wanted = level, wanted
        self.size, self.n_blocks = level.size, level.n_blocks
        self._steps: dict[tuple[int, int | None], Steps] = {}
        self._reduced: dict[tuple[str, int, int], Mapping[str, Floats]] = {}

    def has(self, quantity: str, module: str) -> bool:
        return self._level.has(quantity, module)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        if (start, stop) not in self._steps:
            self._steps[start, stop] = self._level.steps(start, stop)
        return self._steps[start, stop]

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> Mapping[str, Floats]:
        wanted = [one for one in self._wanted.get(quantity, ()) if self.has(quantity, one)]
        if not {*modules} <= {*wanted}:
            return self._level.reduced(quantity, modules, start, stop)
        key = quantity, start, stop
        if key not in self._reduced:
            self._reduced[key] = self._level.reduced(quantity, wanted, start, stop)
        places = [wanted.index(module) for module in modules]
        return {name: values[:, places] for name, values in self._reduced[key].items()}
