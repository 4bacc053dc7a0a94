"""On which scale a quantity is read: shares and cosines linearly, sizes by their logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.ranges import is_bounded, is_share
from notebook_probe.record.format.source import Source, Variable

__all__ = ["bounded", "settled", "shares"]


def bounded(source: Source) -> frozenset[str]:
    """The recorded quantities that are."""
    return frozenset(one.name for one in _variables(source) if is_bounded(one))


def shares(source: Source) -> frozenset[str]:
    """The recorded quantities that are shares."""
    return frozenset(one.name for one in _variables(source) if is_share(one))


def settled(source: Source, selection: PanelSelection) -> PanelSelection:
    """The selection with scales for what is drawn, where nobody chose them."""
    log_heat, log_y, linear = selection.log_heat, selection.log_y, bounded(source)
    if log_heat is None:
        log_heat = selection.home not in linear
    if log_y is None:
        log_y = any(quantity not in linear for _, quantity in selection.series)
    series = [one for one in selection.series if "[" not in one[1]]  # an element is no quantity
    return replace(selection.looking_at("series", series), log_heat=log_heat, log_y=log_y)


def _variables(source: Source) -> Iterator[Variable]:
    for stream in source.streams.values():
        yield from stream.variables
