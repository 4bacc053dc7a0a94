"""Sources of the states of features; values that several features need are shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from notebook_probe.probes.reading.results import CellSource, DerivedSource, StateSource
from notebook_probe.quantities.reduce.features import Feature
from notebook_probe.quantities.reduce.reductions import Derived, Part, Reduction, measuring, parts

__all__ = ["Sources"]


class Sources:
    """The sources of one set of due probes.

    Parameters
    ----------
    new_state : callable
        Gives the index of another state of a frame.
    """

    def __init__(self, new_state: Callable[[], int]) -> None:
        self._new_state = new_state
        self._parts: dict[str, Part] = {}
        self._reductions: dict[str, Reduction] = {}
        self._measured: dict[Feature, tuple[Feature, ...]] = {}
        self._derived: dict[tuple[Any, ...], DerivedSource] = {}

    def measured(self, feature: Feature) -> tuple[Feature, ...]:
        """Return the features that are read for a feature; itself, unless it is derived."""
        if feature not in self._measured:
            part = self._part(feature.part) if feature.part else None
            needs = [replace(feature, part=one) for one in _needs(part)]
            found = [one for need in needs for one in self.measured(need)] or [feature]
            self._measured[feature] = tuple(dict.fromkeys(found))
        return self._measured[feature]

    def reduction(self, feature: Feature) -> Reduction:
        """Return the reduction of a feature; looked up once, for thousands of probes."""
        if feature.part not in self._reductions:
            self._reductions[feature.part] = measuring(feature.part)
        return self._reductions[feature.part]

    def is_plain(self, feature: Feature) -> bool:
        """Return whether a quantity receives what was measured, as it is."""
        part = self._part(feature.part)
        return not isinstance(part, Derived) and part.finish is None

    def source(
        self, feature: Feature, cells: Mapping[Feature, CellSource], per_call: bool
    ) -> StateSource:
        """Return the source of a feature, given the cells of everything that is read for it."""
        part = self._part(feature.part)
        if isinstance(part, Derived):
            needs = [replace(feature, part=need) for need in part.needs]
            of_needs = [self.source(need, cells, per_call) for need in needs]
            return self._shared(feature, part.function, tuple(of_needs), per_call)
        cell = cells[feature]
        if part.finish is None:
            return cell
        return self._shared(feature, part.finish, (cell,), per_call)

    def _shared(
        self,
        feature: Feature,
        function: Callable[..., Any],
        sources: tuple[StateSource, ...],
        per_call: bool,
    ) -> DerivedSource:
        key = feature, sources
        if key not in self._derived:
            index = self._new_state()
            self._derived[key] = DerivedSource(index, function, sources, per_call)
        return self._derived[key]

    def _part(self, name: str) -> Part:
        if name not in self._parts:
            self._parts[name] = parts[name]
        return self._parts[name]


def _needs(part: Part | None) -> tuple[str, ...]:
    return part.needs if isinstance(part, Derived) else ()
