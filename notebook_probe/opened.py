"""Opening a record to look at it: nothing here needs torch."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from notebook_probe.record.reader import OpenedRecord

if TYPE_CHECKING:
    from notebook_probe.explorer import Explorer

__all__ = ["OpenedRun", "open_run"]


class OpenedRun(OpenedRecord):
    """A recorded run; one that another process is writing grows as it is read again."""

    _explorer: Explorer | None = None

    def explore(self) -> Explorer:
        """Show the Explorer on this record: the same panel, without controls."""
        from notebook_probe.explorer import Explorer

        if self._explorer is None or self._explorer.closed:
            self._explorer = Explorer(self)
        self._explorer.show()
        return self._explorer


def open_run(location: str | PathLike[str], branch: int | None = None) -> OpenedRun:
    """Open a finished run, or one that another kernel is writing now.

    Parameters
    ----------
    location : path or URL
        Folder of the record.
    branch : int, optional
        Whose history is seen, from 1, of a record that was branched; the newest one's by default.

    Raises
    ------
    RecordFormatError
        There is no record, or one of a newer format.
    UnknownNameError
        There is no such branch.

    Examples
    --------
    >>> run = open_run("runs/first.zarr")  # doctest: +SKIP
    >>> run.data.weight_norm.sel(module="fc1")  # doctest: +SKIP
    """
    return OpenedRun(str(location), branch)
