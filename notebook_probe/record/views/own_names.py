"""Separate names for series that were written under the same name.

A probe, the loop in a step and the loop in an evaluation may use one name. They write to different
streams, and what is measured keeps the name: a number that the loop logs is ``logged_grad_norm``
where ``grad_norm`` is measured of the whole model. A number of an evaluation is ``eval_accuracy``
where the loop logs ``accuracy`` in training steps, too. A name that only one writer uses stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from notebook_probe.record.format.schema import EVALUATION, LOGGED_BY
from notebook_probe.record.format.source import (
    ChunkGrid,
    Floats,
    LevelView,
    StreamView,
    Variable,
)
from notebook_probe.record.views.wrapped import WrappedLevel, WrappedStream

__all__ = [
    "MEASURED_OF_MODEL",
    "OwnNames",
    "logged_names",
    "measured_of_model",
    "own_names",
    "with_own_names",
]

MEASURED_OF_MODEL = "measured_of_model"
"""Attribute of the root: names of series of the whole model that the loop does not log."""

LOGGED_PREFIX = "logged_"

OwnNames: TypeAlias = "Mapping[tuple[bool, str], str]"
"""The name under which a logged series is read, by whether it is of states and its stored name."""


def measured_of_model(attrs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that a record's attributes list; none where they are damaged."""
    names = attrs.get(MEASURED_OF_MODEL, ())
    is_list = isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
    return tuple(names) if is_list else ()


def logged_names(streams: Iterable[StreamView]) -> tuple[set[str], set[str]]:
    """Return the stored names of what the loop logs of steps, and of states."""
    of_steps: set[str] = set()
    of_states: set[str] = set()
    for stream in streams:
        logged = of_states if stream.name.startswith(EVALUATION) else of_steps
        logged.update(one.name for one in stream.variables if one.long_name == LOGGED_BY)
    return of_steps, of_states


def own_names(streams: Iterable[StreamView], measured: Sequence[str]) -> OwnNames:
    """Return the names of logged series whose stored name another series has.

    Parameters
    ----------
    streams : iterable of StreamView
        Streams of one history.
    measured : sequence of str
        Names of series of the whole model that are measured.
    """
    of_steps, of_states = logged_names(streams)
    taken = {*measured, *of_steps, *of_states}
    found = {}
    # Sorted, so that the same record gives the same names in every process.
    for name in sorted(of_steps.intersection(measured)):
        found[False, name] = _free(LOGGED_PREFIX + name, taken)
    for name in sorted(of_states.intersection({*measured, *of_steps})):
        # No `eval_eval_...` for a name that has the prefix already.
        prefix = LOGGED_PREFIX if name.startswith(EVALUATION) else EVALUATION
        found[True, name] = _free(prefix + name, taken)
    return found


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = LOGGED_PREFIX + name
    taken.add(name)
    return name


def with_own_names(streams: Sequence[StreamView], measured: Sequence[str]) -> list[StreamView]:
    """Return the streams of one history, with each logged series under its own name."""
    names = own_names(streams, measured)
    return [_renamed(stream, names) for stream in streams] if names else [*streams]


def _renamed(stream: StreamView, names: OwnNames) -> StreamView:
    of_states = stream.name.startswith(EVALUATION)
    own = {
        names[of_states, one.name]: one.name
        for one in stream.variables
        if one.long_name == LOGGED_BY and (of_states, one.name) in names
    }
    return _Renamed(stream, own) if own else stream


class _Renamed(WrappedStream):
    """A stream some of whose series have other names.

    Parameters
    ----------
    stream : StreamView
    stored : mapping of str to str
        The stored name of each of these, by the name under which it is read.
    """

    def __init__(self, stream: StreamView, stored: Mapping[str, str]) -> None:
        super().__init__(stream)
        self._stored = stored
        self._own = {name: own for own, name in stored.items()}

    @property
    def variables(self) -> tuple[Variable, ...]:
        own = self._own
        return tuple(
            replace(one, name=own[one.name]) if one.name in own else one
            for one in self._stream.variables
        )

    @property
    def levels(self) -> Mapping[int, LevelView]:
        return {
            size: _RenamedLevel(level, self._stored) for size, level in self._stream.levels.items()
        }

    @property
    def version(self) -> tuple[object, ...]:
        return (*self._stream.version, *self._stored)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        return self._stream.values(self._stored.get(quantity, quantity), start, stop, modules)

    def chunk_grid(self, quantity: str) -> ChunkGrid:
        return self._stream.chunk_grid(self._stored.get(quantity, quantity))


class _RenamedLevel(WrappedLevel):
    """A level some of whose series have other names."""

    def __init__(self, level: LevelView, stored: Mapping[str, str]) -> None:
        super().__init__(level)
        self._stored = stored

    def has(self, quantity: str, module: str) -> bool:
        return self._level.has(self._stored.get(quantity, quantity), module)

    def reduced(
        self, quantity: str, modules: Sequence[str], start: int, stop: int
    ) -> Mapping[str, Floats]:
        stored = self._stored.get(quantity, quantity)
        return self._level.reduced(stored, modules, start, stop)
