"""The streams that are joined, each with its length at the start of the join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from notebook_probe.axis import Axis
from notebook_probe.record.format.schema import NAMES, VECTORS
from notebook_probe.record.format.source import Steps, StreamView, Variable, VectorView
from notebook_probe.record.views.branches.branches import IN_ORDER, read_name
from notebook_probe.record.views.own_widths import Counts, Widths

__all__ = [
    "JoinedStream",
    "columns_of",
    "labels_along",
    "parts_of",
    "steps_of",
    "variables_of",
    "whole_parts_of",
]

_GROUPS = {"element": VECTORS, "name": NAMES}
"""Groups of the streams with such columns."""


@dataclass(frozen=True, slots=True)
class JoinedStream:
    """A stream with its length at the time of the join."""

    stream: StreamView
    columns: str
    """Meaning of the columns: "module", "element" or "name"."""
    axis: Axis | None
    variables: Mapping[str, Variable]
    modules: tuple[str, ...]
    steps: Steps

    @property
    def rank(self) -> tuple[int, int]:
        return read_name(self.stream.name).rank

    @property
    def path(self) -> str:
        """Path in `tree`."""
        if self.columns in _GROUPS:
            return f"{_GROUPS[self.columns]}/{self.stream.name}"
        return self.stream.name if self.axis is None else f"{self.axis.group}/{self.stream.name}"

    @property
    def cell_dims(self) -> tuple[str, ...]:
        return () if self.axis is None else (self.axis.name,)

    @property
    def cell(self) -> tuple[int, ...]:
        return () if self.axis is None else (self.axis.size,)


def parts_of(
    streams: Iterable[StreamView],
    vectors: Iterable[VectorView],
    ragged: Iterable[StreamView] = (),
) -> list[JoinedStream]:
    """Return parts; vectors with a width become two, of counts and of numbers."""
    vectors = list(vectors)
    told = [stream for stream in vectors if stream.axis.has_width]
    counted = [Counts(stream) if stream.axis.has_width else stream for stream in vectors]
    return whole_parts_of([*streams, *map(Widths, told)], counted, ragged)


def whole_parts_of(
    streams: Iterable[StreamView],
    vectors: Iterable[VectorView],
    ragged: Iterable[StreamView] = (),
    named: Iterable[StreamView] = (),
) -> list[JoinedStream]:
    """Return parts of numbers, of vectors, of per-module vectors, and of named scalars."""
    parts = [
        *(_part(stream, "module", None) for stream in streams),
        *(_part(stream, "module", stream.axis) for stream in vectors),
        *(_part(stream, "element", None) for stream in ragged),
        *(_part(stream, "name", None) for stream in named),
    ]
    # Rows written out of order come last: no schedule determines their times and columns.
    return sorted(parts, key=lambda part: (part.rank != IN_ORDER, -len(part.steps)))


def _part(stream: StreamView, columns: str, axis: Axis | None) -> JoinedStream:
    n = stream.n_rows
    variables = {variable.name: variable for variable in stream.variables}
    return JoinedStream(stream, columns, axis, variables, stream.modules, stream.steps(0, n))


def labels_along(parts: Iterable[JoinedStream], modules: Sequence[str]) -> list[str]:
    """Columns of the parts: first ``modules`` in their order, then what is none of them."""
    recorded = dict.fromkeys(label for part in parts for label in part.modules)
    known = frozenset(modules)
    return [*(m for m in modules if m in recorded), *(r for r in recorded if r not in known)]


def variables_of(parts: Iterable[JoinedStream]) -> dict[str, Variable]:
    """Return variables by name; the first part counts."""
    found: dict[str, Variable] = {}
    for part in parts:
        for name, variable in part.variables.items():
            found.setdefault(name, variable)
    return found


def columns_of(parts: Iterable[JoinedStream], modules: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels along each dimension of columns of the join."""
    parts = list(parts)
    return {
        "module": labels_along([part for part in parts if part.columns == "module"], modules),
        "element": labels_along([part for part in parts if part.columns == "element"], ()),
    }


def steps_of(parts: Iterable[JoinedStream]) -> Steps:
    """Return the union of the parts' steps."""
    return reduce(np.union1d, [part.steps for part in parts] or [np.empty(0, np.int64)])
