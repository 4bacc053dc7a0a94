"""Opening of recorded runs; nothing here needs torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from notebook_probe.compare.differences import differ_in_seed_alone
from notebook_probe.errors import ProbeError, RecordWarning
from notebook_probe.lineage.default_columns import pictured, result_of
from notebook_probe.lineage.row import row_of
from notebook_probe.lineage.table import LineageTable
from notebook_probe.record.read import many
from notebook_probe.record.read.ranks import OpenedRanks, rank_folders
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import Location, local_path
from notebook_probe.record.store.other_tools import RunOfOtherTool, run_readers
from notebook_probe.record.store.remote.address import is_location
from notebook_probe.record.views.chunked import ChunksLike
from notebook_probe.record.views.dataset import Dataset
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.actions.source_actions import SourceActions

if TYPE_CHECKING:
    from ipywidgets import VBox
    from matplotlib.figure import Figure

    from notebook_probe.explorer import Explorer
    from notebook_probe.run.controls import Controls

__all__ = [
    "Lineage",
    "MarkRun",
    "OpenedJob",
    "OpenedRun",
    "OpenedRuns",
    "open_run",
    "open_runs",
]

MarkRun: TypeAlias = Callable[[str, str, str], Mapping[str, Any]]
"""Mark the run at a location: a field and its text; returns the changed cells of its row."""


def _old_run(path: Path) -> RunOfOtherTool | None:
    # Imported on use: most runs are records, and the readers of ten formats take time to import.
    from notebook_probe.old_runs.finding import find_old_run

    return find_old_run(path)


run_readers.add("old_runs", _old_run)


LIVE = "of a run that trains in this process, as nbp.watch returns it"
MOST_NAMED = 12
"""Columns that an error names."""
OF_LIVE_RUNS = """
annotate at_step attach attach_preset attachable batch batches boundary breakpoints budget close
closed detach examine expect first_difference flight flush knob knobs load_state_dict log
log_array look mirror note on_compiled pause pause_when probe_batch probes release reschedule
resume rules scale set state_dict status step stop to_onnx train_in_background would_pause
"""
"""Names that only a live run has; its class needs torch, which this module does not."""


class OpenedRun(SourceActions, OpenedRecord):
    """A recorded run; if another process writes it, reading again shows new rows."""

    def _instead(self, name: str) -> str:
        return super()._instead(name) or (LIVE if name in OF_LIVE_RUNS.split() else "")

    def _controls(self) -> Controls | None:
        """Return the way to a training that allows control; None for any other record."""
        if self._branch is not None or self.finished or not self.is_written:
            return None
        from notebook_probe.run.remote_control.remote_controls import RemoteControls

        controls = RemoteControls(self, self._location)
        return controls if controls.reach() else None

    @property
    def _was_watched(self) -> bool:
        return "model_class" in self.attrs  # which `watch` writes, and no tool's old run has

    @contextmanager
    def _writing(self) -> Iterator[RecordWriter]:
        with RecordWriter.reopen(self._location) as writer:
            yield writer
        self.refresh()


class OpenedJob(OpenedRanks, OpenedRun):
    """A recorded job of several ranks; ``data`` and similar have a ``rank`` dimension.

    The panel and `alerts` show the first rank; open ``rank_00001`` for those of another rank.
    """


class Lineage(LineageTable):
    """The table of `OpenedRuns.lineage`, with its picture and its widget."""

    def picture(self, columns: Iterable[str] = (), colour: str = "") -> Figure:
        """Parallel coordinates by matplotlib: a line for each run, an axis for each column.

        Parameters
        ----------
        columns : iterable of str, optional
            Names or patterns such as ``"config.*"``; by default settings in which runs differ, and
            results.
        colour : str, optional
            Column for the color of the lines; by default an evaluation, else the last column.

        Raises
        ------
        UnknownNameError
        ValueError
            The table has no runs, or there are fewer than two columns to show.

        Examples
        --------
        >>> table.picture(["config.*", "eval.accuracy"], colour="eval.accuracy")  # doctest: +SKIP
        """
        from notebook_probe.figures.parallel.picture import parallel

        if not self.rows:
            raise ValueError("this table has no runs, so that there is nothing to draw")
        wanted = self.matching(*([columns] if isinstance(columns, str) else columns))
        shown = [*dict.fromkeys([*(wanted or pictured(self)), *([colour] if colour else [])])]
        if len(shown) < 2:
            raise ValueError(
                f"picture shows {', '.join(shown) or 'no column'}; at least two columns are "
                f"expected, such as picture(['loss.last', 'steps']), of "
                f"{', '.join(self.shown()[:MOST_NAMED])}"
            )
        return parallel({one: self[one] for one in shown}, colour or result_of(shown))

    def explore(self) -> VBox:
        """Return the table as a widget, in which runs are sorted, searched, opened and compared.

        A click on a header sorts; the box takes words, or a condition such as ``config.lr < 1e-3
        and state == 'finished'``; *columns* selects the visible columns. Each row has the line of
        its loss and a badge that counts its alerts. A click on a row opens its run below, a tick
        overlays it on the open one. Growing runs are followed while the table is visible; new runs
        are added to a table of a catalogue.

        Returns
        -------
        ipywidgets.VBox
            Show it as the result of a cell, or among other widgets.

        Examples
        --------
        >>> nbp.open_runs("runs/*.zarr").lineage().explore()  # doctest: +SKIP
        """
        from notebook_probe.explorer.runs_table import KeptTable, TableSource, runs_box

        def explorer_of(place: str) -> Explorer:
            return open_run(place).explorer

        return runs_box(
            self,
            explorer_of,
            TableSource(self._condition, self._read_row, self._again, self._mark),
            KeptTable(self._kept_in),
        )

    @property
    def _kept_in(self) -> Path | None:
        """Folder in which the arrangement of the table is kept: that of all records, if any."""
        places = [local_path(str(row.get("run") or "")) for row in self]
        folders = {place.parent for place in places if place is not None}
        return folders.pop() if len(folders) == 1 else None

    @property
    def _mark(self) -> MarkRun | None:
        """Function that marks a run; None if the rows of the table have no marks."""
        return None

    @property
    def _again(self) -> Callable[[], Iterable[Mapping[str, Any]]] | None:
        """Function that returns the present rows; None if they never change."""
        return None

    def _condition(self, text: str) -> Callable[[Mapping[str, Any]], bool]:
        """Parse a text; a field that no run has is refused as a typo."""
        from notebook_probe.catalogues.query.where import condition

        wanted = condition(text)
        wanted.check(self.columns)
        return wanted.matches

    def _read_row(self, record: OpenedRecord) -> Mapping[str, Any]:
        """Return the row of a run that has grown."""
        return row_of(record)


class OpenedRuns(Dataset):
    """Many recorded runs as one dataset, dims (run, module, step); see `open_runs`."""

    __slots__ = ()

    def lineage(self) -> Lineage:
        """Return a table of the runs' provenance and results, with a row for each run.

        It covers every record, with or without a collected lineage: state, steps, first, last and
        best loss, alerts, config, evaluations, code and packages, by dotted names.

        Warns
        -----
        RecordWarning
            A record can no longer be read; the others are included.

        Examples
        --------
        >>> table = nbp.open_runs("runs/*.zarr").lineage()  # doctest: +SKIP
        >>> table.sort("eval.accuracy", descending=True)  # doctest: +SKIP
        >>> table.where("config.optimizer", "SGD").to_pandas()  # doctest: +SKIP
        """
        places = np.atleast_1d(self["run"].values).tolist()
        rows = []
        for place in places:
            try:
                rows.append(row_of(OpenedRecord(place)))
            except (ProbeError, OSError) as error:
                warnings.warn(f"left out: {error}", RecordWarning, stacklevel=2)
        return Lineage.of(rows)

    def explore(self) -> Explorer | None:
        """Show the first run in the Explorer, with the others overlaid.

        Lines of all runs are drawn together, the heat map is the ratio to the second run, and the
        footer says where they diverge. Other runs whose configs differ only in a seed are one
        group, shown as its mean and spread, until a click separates them. Growing runs are
        followed.

        Warns
        -----
        RecordWarning
            More than four other runs, which could not be distinguished.

        Examples
        --------
        >>> nbp.open_runs("runs/digits-*.zarr").explore()  # doctest: +SKIP
        >>> study.sel(run=study.title.str.contains("seed")).explore()  # doctest: +SKIP
        """
        first, *others = np.atleast_1d(self["run"].values).tolist()
        return open_run(first).explore(others, _is_one_setting(others))


def _is_one_setting(locations: Sequence[str]) -> bool:
    """Return whether these differ in seed alone; False if one cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)  # of what `open_runs` has warned
        try:
            runs = [open_run(one) for one in locations]
        except (ProbeError, OSError):
            return False
    return len(runs) > 1 and differ_in_seed_alone(runs)


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
        ``rank`` dimension; or the store to which it was shipped. Also a run of W&B, TensorBoard,
        trackio, MLflow, Hugging Face's Trainer or Lightning, or a CSV or JSON lines file.
    branch : int, optional
        Branch of a branched record, from 1; by default the newest.

    chunks : dict, optional
        If given, `OpenedRun.data` has dask arrays with these chunks, see `OpenedRun.dataset`;
        ``{}`` for the chunks on disk.

    Raises
    ------
    MissingExtraError
        For ``chunks`` without dask: ``pip install 'notebook-probe[analysis]'``.
    RecordFormatError
        There is no record, or one of a newer format.
    StoreSilentError
        The run's object store does not answer.
    TypeError
        ``location`` is not a location, for example a run, which is open already.
    UnknownNameError
        The branch does not exist.

    Warns
    -----
    RecordWarning
        A part cannot be read, or rows could not be written and are stored elsewhere.

    Examples
    --------
    >>> run = open_run("runs/first.zarr")  # doctest: +SKIP
    >>> run.data.weight_norm.sel(module="fc1")  # doctest: +SKIP
    """
    _check_location(location)
    place = Path(location) if isinstance(location, PathLike) else location
    run = (OpenedJob if rank_folders(place) else OpenedRun)(place, branch, chunks)
    run.warn_of_unwritten()
    return run


def _check_location(given: object) -> None:
    if isinstance(given, SourceActions):
        raise TypeError(
            f"open_run({type(given).__name__}): this is a run, which can be read directly; another "
            f"look at its record is open_run(run.location)"
        )
    if not is_location(given):
        raise TypeError(
            f"open_run({given!r}): a path, a URL, a zarr Store, an obstore store or an icechunk "
            f"Repository is expected"
        )


def open_runs(runs: str | PathLike[str] | Iterable[str | PathLike[str]]) -> OpenedRuns:
    """Open many runs as one dataset with a ``run`` dimension, larger than memory.

    Parameters
    ----------
    runs : str, path or iterable of these
        A pattern such as ``"runs/*.zarr"``, or the locations themselves. Each rank of a distributed
        job is a run, ``"runs/job.zarr/rank_00003"``.

    Returns
    -------
    OpenedRuns
        An ``xarray.Dataset`` of dask arrays with dims (run, module, step), and one more for
        vectors. Modules and steps are the union over the runs, NaN if a run has none; per-module
        vectors stay in the records. Coordinates ``run`` (the location), ``title`` and ``run_id``.
        Its ``explore()`` compares them.

    Raises
    ------
    RecordFormatError
        No record is there.
    MissingExtraError
        dask is not installed: ``pip install 'notebook-probe[analysis]'``.

    Warns
    -----
    RecordWarning
        A match is not a readable record; the others are included.

    Examples
    --------
    >>> study = open_runs("runs/*.zarr")  # doctest: +SKIP
    >>> study.weight_norm.sel(module="fc").mean("run").plot()  # doctest: +SKIP
    >>> study.explore()  # doctest: +SKIP
    """
    found = many.open_runs(runs)
    return OpenedRuns(found.data_vars, found.coords, found.attrs)
