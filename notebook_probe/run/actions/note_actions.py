"""Facts of a run that are not series: configuration, notes, provenance, data, looks, graph."""

from __future__ import annotations

from typing import Any

from notebook_probe.errors import NotLookedError, shown_as
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.recorded import graph_of
from notebook_probe.lineage.dataset_graph import DatasetGraph, read_dataset_graph
from notebook_probe.record.format.notes import ANNOTATIONS, CONFIG, LINEAGE, read_notes
from notebook_probe.record.views.looks import Look, looks_of
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["NoteActions"]


@shown_as("run")
class NoteActions:
    """Methods of live and opened runs that read facts that are recorded once, not at each step."""

    @property
    def config(self: RunSource) -> dict[str, Any]:
        """Configuration of the training: the ``config`` of `watch`, as a new dict.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").config["lr"]  # doctest: +SKIP
        0.1
        """
        return read_notes(self.snapshot().attrs, CONFIG)

    @property
    def annotations(self: RunSource) -> dict[str, Any]:
        """Notes made by `annotate`, as a new dict."""
        return read_notes(self.snapshot().attrs, ANNOTATIONS)

    def lineage(self: RunSource) -> dict[str, Any]:
        """Return the run's provenance, by part, as a new dict.

        `open_runs` makes a table of many.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").lineage()["eval"]["metrics"]  # doctest: +SKIP
        {'accuracy': 0.93}
        """
        return read_notes(self.snapshot().attrs, LINEAGE)

    def dataset_graph(self: RunSource) -> DatasetGraph:
        """Return the training data as a tree: loader, sampler, dataset, transforms.

        Raises
        ------
        NotLookedError
            The data was not noted.

        Examples
        --------
        >>> run.dataset_graph()  # doctest: +SKIP
        DataLoader (938): batch_size=64, shuffle=True, num_workers=2
          dataset: MNIST (60 000): root=/data, train=True
        """
        found = read_dataset_graph(self.events)
        if found is None:
            raise NotLookedError(f"{self.name}: no dataset graph is recorded")
        return found

    @property
    def looks(self: RunSource) -> list[Look]:
        """Stored looks, by step; `run.look` and the panel request them.

        Examples
        --------
        >>> [(look.module, look.step) for look in nbp.open_run(path).looks]  # doctest: +SKIP
        [('conv1', 100), ('conv1', 812)]
        """
        return looks_of(self.events, lambda: self.blobs)

    def graph(self: RunSource) -> Graph:
        """Return the graph of the network, as recorded last.

        Raises
        ------
        NoGraphError
            No graph was recorded: `Run.graph` builds and records it while the run is live.
        RecordFormatError
            The recorded graph is damaged.

        Examples
        --------
        >>> print(nbp.open_run("runs/first.zarr").graph())  # doctest: +SKIP
        ResNet: exported, 69 operators of 61 modules
        """
        return graph_of(self.events, self.location)
