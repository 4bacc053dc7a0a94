"""Scale of a quantity: linear for shares and cosines, logarithmic for sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.ranges import is_bounded, is_share
from notebook_probe.record.format.source import Source, Variable

__all__ = ["bounded", "settled", "shares"]


def bounded(source: Source) -> frozenset[str]:
    """Return the recorded quantities with bounds."""
    return frozenset(one.name for one in _variables(source) if is_bounded(one))


def shares(source: Source) -> frozenset[str]:
    """Return the recorded quantities that are shares."""
    return frozenset(one.name for one in _variables(source) if is_share(one))


def settled(source: Source, selection: PanelSelection) -> PanelSelection:
    """Return the selection, with scales chosen from the data where the user has not chosen."""
    log_heat, log_y, linear = selection.log_heat, selection.log_y, bounded(source)
    if log_heat is None:
        log_heat = selection.home not in linear
    if log_y is None:
        # One series of sizes is enough: a linear scale would hide its small values.
        log_y = any(quantity not in linear for _, quantity in selection.series)
    series = [one for one in selection.series if "[" not in one[1]]  # an element is no quantity
    return replace(selection.looking_at("series", series), log_heat=log_heat, log_y=log_y)


def _variables(source: Source) -> Iterator[Variable]:
    for stream in source.streams.values():
        yield from stream.variables
