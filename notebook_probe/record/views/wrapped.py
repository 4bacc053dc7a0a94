"""A wrapped stream: the same stream except for a subclass's changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notebook_probe.record.format.source import (
    ChunkGrid,
    Floats,
    LevelView,
    Steps,
    StreamView,
    Variable,
)

__all__ = ["WrappedLevel", "WrappedStream"]


class WrappedStream:
    """A StreamView that answers as ``stream`` does."""

    def __init__(self, stream: StreamView) -> None:
        self._stream = stream

    @property
    def name(self) -> str:
        return self._stream.name

    @property
    def modules(self) -> tuple[str, ...]:
        return self._stream.modules

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self._stream.variables

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return self._stream.levels

    @property
    def version(self) -> tuple[object, ...]:
        return self._stream.version

    @property
    def n_rows(self) -> int:
        return self._stream.n_rows

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._stream.steps(start, stop)

    def times(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._stream.times(start, stop)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._stream.values(quantity, start, stop, modules)

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return self._stream.chunk_grid(quantity)


class WrappedLevel:
    """A LevelView that answers as ``level`` does."""

    def __init__(self, level: LevelView) -> None:
        self._level = level

    @property
    def size(self) -> int:
        return self._level.size

    @property
    def n_blocks(self) -> int:
        return self._level.n_blocks

    def has(self, quantity: str, module: str) -> bool:
        return self._level.has(quantity, module)

    def steps(self, start: int = 0, stop: int | None = None) -> Steps:
        return self._level.steps(start, stop)

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> Mapping[str, Floats]:
        return self._level.reduced(quantity, modules, start, stop)
