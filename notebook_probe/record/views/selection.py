"""Selection of quantities, modules and steps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from notebook_probe.checks import step_range
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.elements import read_element
from notebook_probe.record.format.lookup import recorded_name
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Steps, StreamView, Variable
from notebook_probe.record.views.own_widths import seen_as

__all__ = ["Names", "Selected", "select"]

Names: TypeAlias = str | Iterable[str] | None
"""A name, a pattern with ``*``, several of both, or None for all."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Names that are recorded, and a range of steps."""

    quantities: frozenset[str]
    modules: frozenset[str]
    start: int
    stop: int | None
    """Steps ``start <= step < stop``; no end when None."""

    def rows(self, steps: Steps) -> slice:
        """Return the selected rows of a stream, or of a joined axis."""
        first = int(np.searchsorted(steps, self.start))
        last = len(steps) if self.stop is None else int(np.searchsorted(steps, self.stop))
        return slice(first, max(first, last))

    def variables_of(self, stream: StreamView) -> list[Variable]:
        return [variable for variable in stream.variables if variable.name in self.quantities]

    def modules_of(self, stream: StreamView) -> list[str]:
        return [module for module in stream.modules if module in self.modules]

    def elements_of(self, stream: StreamView) -> list[str]:
        """Columns of a stream of vectors of every module's own length."""
        return [label for label in stream.modules if read_element(label)[0] in self.modules]


def select(
    streams: Iterable[StreamView],
    ragged: Iterable[StreamView],
    quantity: Names,
    module: Names,
    start: int,
    stop: int | None,
) -> Selected:
    """Return the selection as the user spells it, for ``streams`` and ``ragged`` ones.

    Raises
    ------
    UnknownNameError
        For a name that is not recorded, or a pattern that nothing matches.
    ValueError
        For steps that are no whole numbers from 0, or a ``stop`` below ``start``.
    """
    step_range(start, stop)
    streams, ragged = tuple(streams), tuple(ragged)
    variables = [variable for stream in (*streams, *ragged) for variable in seen_as(stream)]
    quantities = dict.fromkeys(variable.name for variable in variables)
    if quantity is not None:
        quantity = [recorded_name(name, variables) for name in _listed(quantity)]
    modules = dict.fromkeys(m for stream in streams for m in stream.modules)
    modules |= dict.fromkeys(read_element(m)[0] for stream in ragged for m in stream.modules)
    labels = module if module is None else [module_label(name) for name in _listed(module)]
    return Selected(
        _chosen("quantity", quantity, quantities), _chosen("module", labels, modules), start, stop
    )


def _listed(names: str | Iterable[str]) -> list[str]:
    if isinstance(names, str):
        return [names]
    listed = list(names) if isinstance(names, Iterable) else [names]
    if wrong := [name for name in listed if not isinstance(name, str)]:
        raise TypeError(f"{wrong[0]!r}; a name or a pattern as text is expected, such as 'fc*'")
    return listed


def _chosen(what: str, names: Names, known: Iterable[str]) -> frozenset[str]:
    if names is None:
        return frozenset(known)
    found: set[str] = set()
    for name in _listed(names):
        # An exact name wins, as a name may contain an asterisk itself.
        matches = [one for one in known if one == name] or [
            one for one in known if "*" in name and _matches(name, one)
        ]
        if not matches:
            raise UnknownNameError(f"no {what} {name!r} is recorded; {near(name, known)}")
        found.update(matches)
    return frozenset(found)


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
