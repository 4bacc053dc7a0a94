"""The data of a training, described once."""

from __future__ import annotations

from notebook_probe.lineage.dataset_graph import DATASET_GRAPH
from notebook_probe.summary.dataset_graph.describe import describe
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["DatasetGraphItem"]


class DatasetGraphItem(Item):
    """Notes an event ``dataset_graph`` after the first step, where the data is known."""

    name = "collect_dataset_graph"

    @classmethod
    def read(cls, settings: CollectorSettings) -> DatasetGraphItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def begin(self, moment: Moment) -> None:
        if moment.data is not None:
            graph = describe(moment.data.source)
            told = f"trained on {graph.root.name} of {len([*graph])} parts"
            moment.run.note(DATASET_GRAPH, told, graph=graph.plain())
