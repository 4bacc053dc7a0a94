"""Readings of a module's calls that compiled graphs can make."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from notebook_probe.probes.reading.cells import Cell
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.reductions import Derived, parts

__all__ = ["can_read", "cells", "is_read", "traceable", "witnesses"]

READ = ("output", "input", "grad_output", "grad_input")
"""Tensors whose sums a graph can hand out."""


def can_read(probe: Probe) -> bool:
    """Return whether graphs can hand out all that a probe of calls needs."""
    features = probe.quantity.features
    return not probe.per_call and all(
        feature.tensor in READ and _is_traced(feature.part) for feature in features
    )


def _is_traced(part: str) -> bool:
    """Return whether graphs can hand out what a part is, or is derived from."""
    if not part:
        return False
    found = parts[part]
    if isinstance(found, Derived):
        return all(map(_is_traced, found.needs))
    return found.traced is not None


def traceable(plan: ReadingPlan, tensor: str) -> frozenset[str]:
    """Return the parts that a graph can hand out of a tensor of calls; empty if none.

    Those of several calls that are kept apart cannot be: a graph does not number its calls.
    """
    return frozenset(itertools.chain(*(cell.wanted for cell in cells(plan, tensor))))


def cells(plan: ReadingPlan, tensor: str) -> Iterator[Cell]:
    """Yield the cells of a tensor that a graph can fill."""
    for cell in plan.cells.get(tensor, ()):
        if type(cell) is Cell and cell.reduction.traced is not None:
            yield cell


def is_read(plan: ReadingPlan) -> bool:
    """Return whether a graph has anything to read for a plan."""
    return any(traceable(plan, tensor) for tensor in READ)


def witnesses(plans: Mapping[str, ReadingPlan]) -> set[str]:
    """Return places whose gradients tell whether calls had a backward, where none is read."""
    if any(traceable(plan, "grad_output") for plan in plans.values()):
        return set()
    return {*[*plans][:1], *[*plans][-1:]}
