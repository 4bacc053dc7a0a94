"""Opening a record to look at it: nothing here needs torch."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_probe.alerts import Alerts, Rule, find_alerts, read_alerts
from notebook_probe.record.read.many import open_runs
from notebook_probe.record.read.ranks import OpenedRanks, rank_folders
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import Location
from notebook_probe.record.write.writer import RecordWriter

if TYPE_CHECKING:
    import numpy.typing as npt

    from notebook_probe.explorer import Explorer, Panel

__all__ = ["OpenedJob", "OpenedRun", "open_run", "open_runs"]


class OpenedRun(OpenedRecord):
    """A recorded run; one that another process is writing grows as it is read again."""

    _panel: Panel | None = None

    def explore(self) -> Explorer:
        """Show the Explorer on this record: the same panel, without controls."""
        return self._panel_of().show()

    @property
    def explorer(self) -> Explorer:
        """The Explorer as a widget that is not shown yet, to be placed among your own."""
        return self._panel_of().explorer

    def _panel_of(self) -> Panel:
        from notebook_probe.explorer import Panel

        if self._panel is None:
            self._panel = Panel(self)
        return self._panel

    @property
    def alerts(self) -> Alerts:
        """What the rules found while the run was recorded, each with its step and its place."""
        return read_alerts(self.events, len(self.snapshot().branches.starts))

    def find_alerts(self, *rules: Rule) -> Alerts:
        """What these rules, or all registered ones, find in all that is recorded.

        Nothing is written, so that thresholds can be tried.

        Raises
        ------
        RuleError
            When a rule fails.

        Examples
        --------
        >>> from notebook_probe.alerts import RULES
        >>> run.find_alerts(RULES["dead_units"].but(most=0.3))  # doctest: +SKIP
        """
        return find_alerts(self, *rules)

    def backfill(
        self,
        module: str,
        quantity: str,
        steps: npt.ArrayLike,
        values: npt.ArrayLike,
        units: str = "1",
        long_name: str = "",
    ) -> None:
        """Write a series into the finished run, into any steps.

        Of each module, quantity and step the value written last is read; nothing that was
        recorded is changed on disk.

        Parameters
        ----------
        module : str
            Path of a module or a parameter of the model, ``""`` for the whole.
        steps, values
            A step and its value, or as many of both, in any order.
        units, long_name : str
            Of a quantity that is new in the record.

        Raises
        ------
        UnknownNameError, ValueError, QuantityError
            Before anything is written.
        RecordLockedError
            While the run is being recorded; use `Run.backfill` there.
        RecordWriteError
            When it cannot be written.

        Examples
        --------
        >>> run = open_run("runs/first.zarr")  # doctest: +SKIP
        >>> run.backfill("", "test_accuracy", [0, 1000], [0.1, 0.93])  # doctest: +SKIP
        """
        with RecordWriter.reopen(self._location) as writer:
            writer.backfill(module, quantity, steps, values, units, long_name)
        self.refresh()


class OpenedJob(OpenedRanks, OpenedRun):
    """A recorded job of several ranks; ``data`` and the other looks have a ``rank`` dimension.

    The panel shows the first rank, and `alerts` are those of it; open ``rank_00001`` for another's.
    """


def open_run(location: Location | PathLike[str], branch: int | None = None) -> OpenedRun:
    """Open a finished run, or one that another kernel is writing now.

    Parameters
    ----------
    location : path, URL, zarr Store, icechunk Repository or RemoteStore
        Folder of the record, a packed one, or the folder of a distributed job, whose data has a
        ``rank`` dimension; or where it was shipped to.
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
    place = Path(location) if isinstance(location, PathLike) else location
    return OpenedJob(place, branch) if rank_folders(place) else OpenedRun(place, branch)
