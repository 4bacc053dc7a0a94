"""The data of a training, described: loader, sampler, dataset and transforms with their settings.

::

    loader ─▶ members ─▶ parts, each once, nested ─▶ DatasetGraph ─▶ an event of the record
                      └▶ settings, in few words
"""

from notebook_probe.summary.dataset_graph.describe import describe

__all__ = ["describe"]
