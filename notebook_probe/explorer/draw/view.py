"""A view turns what is selected into one message with binary buffers; views are found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source
from notebook_probe.registry import Registry

__all__ = ["VIEWS", "Frame", "View", "view"]

Frame: TypeAlias = tuple[Mapping[str, Any], list[memoryview]]
"""A message of `wire` (its ``seq`` is stamped when it is sent) and its buffers."""


class View(Protocol):
    """One way of looking at a source; an object lives as long as its panel and may keep caches."""

    def frame(self, source: Source, selection: PanelSelection, width: int) -> Frame | None:
        """What to draw now on ``width`` pixels; None when there is nothing to draw yet.

        Called in the refresher's thread whenever the source, the selection or the width has
        changed, so its cost must not grow with the length of the run.
        """


def _defined_again(old: Callable[[], View], new: Callable[[], View]) -> bool:
    """Whether a cell was run twice."""
    return getattr(old, "__qualname__", "") == getattr(new, "__qualname__", None)


VIEWS: Registry[Callable[[], View]] = Registry("view", "notebook_probe.views", same=_defined_again)
"""Name of the message type to what makes its view, a new one for each panel."""

Made = TypeVar("Made", bound=Callable[[], View])


def view(name: str) -> Callable[[Made], Made]:
    """Register a class as the view whose messages have the type ``name``.

    Examples
    --------
    >>> @view("count")
    ... class Count:
    ...     def frame(self, source, selection, width):
    ...         return {"v": 1, "type": "count", "seq": 0, "n": len(source.streams)}, []
    >>> "count" in VIEWS
    True
    """

    def register(made: Made) -> Made:
        VIEWS.add(name, made)
        return made

    return register
