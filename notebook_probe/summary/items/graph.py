"""The graph of the network, once."""

from __future__ import annotations

from notebook_probe.run.attach.requests import BuildGraph
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import Settings

__all__ = ["GraphItem"]


class GraphItem(Item):
    """Asks the run for the graph of its model, as it is called in the first step."""

    name = "collect_graph"

    def __init__(self) -> None:
        super().__init__()
        self._is_asked = False

    @classmethod
    def read(cls, settings: Settings) -> GraphItem | None:
        """The item, where it is wanted."""
        return cls() if settings.collects(cls.name) else None

    def start(self, moment: Moment) -> None:
        if not self._is_asked:
            self._is_asked = True
            moment.run.put(BuildGraph())
