"""The files that views ask for, made one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue

from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.wire import Exported
from notebook_probe.explorer.save.export import FileKind, export
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["FileExports"]


class FileExports:
    """Make files in a thread if they show other runs: their disk may be slow, or missing."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self._worker = Worker("notebook_probe files")
        self._made: SimpleQueue[tuple[Exported, list[memoryview]]] = SimpleQueue()

    def make(self, kind: FileKind, selection: PanelSelection) -> None:
        """Make a file of the present selection."""

        def task() -> None:
            self._made.put(export(kind, self._source, selection))

        if selection.others:
            self._worker.do(task)
        else:
            task()

    def made(self) -> Iterator[tuple[Exported, list[memoryview]]]:
        """Yield the files that are ready, each once."""
        while not self._made.empty():
            yield self._made.get()

    def close(self) -> None:
        """Stop making files."""
        self._worker.close()
