"""Opening a record to look at it: nothing here needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from notebook_probe.record.read.many import open_runs
from notebook_probe.record.read.ranks import OpenedRanks, rank_folders
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import Location
from notebook_probe.record.views.chunked import ChunksLike
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.actions.source_actions import SourceActions

__all__ = ["OpenedJob", "OpenedRun", "open_run", "open_runs"]


class OpenedRun(SourceActions, OpenedRecord):
    """A recorded run; one that another process is writing grows as it is read again."""

    @contextmanager
    def _writing(self) -> Iterator[RecordWriter]:
        with RecordWriter.reopen(self._location) as writer:
            yield writer
        self.refresh()


class OpenedJob(OpenedRanks, OpenedRun):
    """A recorded job of several ranks; ``data`` and the other looks have a ``rank`` dimension.

    The panel shows the first rank, and `alerts` are those of it; open ``rank_00001`` for another's.
    """


def open_run(
    location: Location | PathLike[str],
    branch: int | None = None,
    chunks: ChunksLike | None = None,
) -> OpenedRun:
    """Open a finished run, or one that another kernel is writing now.

    Parameters
    ----------
    location : path, URL, zarr Store, icechunk Repository or RemoteStore
        Folder of the record, a packed one, or the folder of a distributed job, whose data has a
        ``rank`` dimension; or where it was shipped to.
    branch : int, optional
        Whose history is seen, from 1, of a record that was branched; the newest one's by default.

    chunks : dict, optional
        Makes `OpenedRun.data` of dask arrays, cut as `OpenedRun.dataset` says: ``{}`` for the
        chunks on disk.

    Raises
    ------
    MissingExtraError
        For ``chunks`` without dask: ``pip install 'notebook-probe[analysis]'``.
    RecordFormatError
        There is no record, or one of a newer format.
    UnknownNameError
        There is no such branch.

    Warns
    -----
    RecordWarning
        For a part that cannot be read, and for rows that could not be written and lie elsewhere.

    Examples
    --------
    >>> run = open_run("runs/first.zarr")  # doctest: +SKIP
    >>> run.data.weight_norm.sel(module="fc1")  # doctest: +SKIP
    """
    place = Path(location) if isinstance(location, PathLike) else location
    run = (OpenedJob if rank_folders(place) else OpenedRun)(place, branch, chunks)
    run.warn_of_unwritten()
    return run
