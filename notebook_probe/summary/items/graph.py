"""The graph of the network, once."""

from __future__ import annotations

from notebook_probe.run.attach.requests import BuildGraph
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["GraphItem"]


class GraphItem(Item):
    """Request the graph of the model, as called in the first step."""

    name = "collect_graph"

    def __init__(self) -> None:
        super().__init__()
        self._is_asked = False

    @classmethod
    def read(cls, settings: CollectorSettings) -> GraphItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def start(self, moment: Moment) -> None:
        if not self._is_asked:
            self._is_asked = True
            # A request, as the first step provides the inputs for it.
            moment.run.controls.put(BuildGraph())
