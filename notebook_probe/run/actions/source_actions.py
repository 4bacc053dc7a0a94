"""What one does with a run beside reading it, whether it is live or was opened; without torch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from notebook_probe.alerts import Alerts, Rule, find_alerts, read_alerts
from notebook_probe.errors import NotLookedError
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.recorded import graph_of
from notebook_probe.lineage.dataset_graph import DatasetGraph, read_dataset_graph
from notebook_probe.record.format.notes import ANNOTATIONS, CONFIG, LINEAGE, read_notes
from notebook_probe.record.format.source import ALIASES, Source
from notebook_probe.record.views.looks import Look, looks_of
from notebook_probe.record.views.xarray_views import Snapshot
from notebook_probe.record.write.writer import RecordWriter

if TYPE_CHECKING:
    import numpy.typing as npt

    from notebook_probe.explorer import Explorer, Panel
    from notebook_probe.run.controls import Controls

__all__ = ["SourceActions"]


class _Acting(Source, Protocol):
    """What the actions need of the source that they are part of."""

    _panel: Panel | None

    def _open_panel(self) -> Panel: ...

    def snapshot(self) -> Snapshot: ...
    def _controls(self) -> Controls | None: ...
    def _followed_rules(self) -> Iterable[Rule]: ...
    def _bring_alerts(self) -> None: ...
    def _writing(self) -> AbstractContextManager[RecordWriter]: ...


class SourceActions:
    """Showing a run, looking at its alerts, and adding to its record.

    Who inherits this says in `_writing` who writes; a live run also says how it is steered, which
    rules it follows, and how their findings come up to date.
    """

    _panel: Panel | None = None

    def _controls(self) -> Controls | None:
        """The side of a live run that the panel may call."""
        return None

    def _followed_rules(self) -> Iterable[Rule]:
        """The rules to apply when none are named; without any, all registered ones."""
        return ()

    def _bring_alerts(self) -> None:
        """Have the alerts come up to date."""

    @property
    def config(self: _Acting) -> dict[str, Any]:
        """What the training was begun with: the ``config`` of `watch`, as a dict of its own.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").config["lr"]  # doctest: +SKIP
        0.1
        """
        return read_notes(self.snapshot().attrs, CONFIG)

    @property
    def annotations(self: _Acting) -> dict[str, Any]:
        """What was noted of the run by `annotate`, as a dict of its own."""
        return read_notes(self.snapshot().attrs, ANNOTATIONS)

    def lineage(self: _Acting) -> dict[str, Any]:
        """Of what the run came, and what came of it, by part, as a dict of its own.

        `open_runs` makes a table of those of many.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").lineage()["eval"]["metrics"]  # doctest: +SKIP
        {'accuracy': 0.93}
        """
        return read_notes(self.snapshot().attrs, LINEAGE)

    def dataset_graph(self: _Acting) -> DatasetGraph:
        """The data it was trained on as a tree: loader, sampler, dataset, transforms.

        Raises
        ------
        NotLookedError
            It was not noted.

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
    def looks(self: _Acting) -> list[Look]:
        """The looks that are kept, by step: `run.look` and the panel take them.

        Examples
        --------
        >>> [(look.module, look.step) for look in nbp.open_run(path).looks]  # doctest: +SKIP
        [('conv1', 100), ('conv1', 812)]
        """
        return looks_of(self.events, lambda: self.blobs)

    def graph(self: _Acting) -> Graph:
        """The graph of the network, as it was recorded last.

        Raises
        ------
        NoGraphError
            None was: `Run.graph` builds and records it while the run is live.
        RecordFormatError
            It is damaged.

        Examples
        --------
        >>> print(nbp.open_run("runs/first.zarr").graph())  # doctest: +SKIP
        ResNet: exported, 69 operators of 61 modules
        """
        return graph_of(self.events, self.location)

    def explore(
        self: _Acting, others: Iterable[str | PathLike[str]] = (), grouped: bool = False
    ) -> Explorer | None:
        """Show the Explorer under this cell; it stays alive while the cells below run.

        Of a recorded run it is the same panel, without controls. In a plain script one line says
        that there is no notebook, and the training goes on.

        Parameters
        ----------
        others : iterable of path or URL
            Runs beside this one, four at most: their lines are drawn with its own, and the heat map
            is the ratio to the first of them.
        grouped : bool
            They are one group: its mean, and how far its runs lie apart.

        Returns
        -------
        Explorer or None
            The widget; None in a script where the packages of the panel are not installed.

        Raises
        ------
        ModuleNotFoundError
            They are not, in a notebook.

        Warns
        -----
        RecordWarning
            For more than four.

        Examples
        --------
        >>> run.explore(others=["runs/digits-cnn-8.zarr"])  # doctest: +SKIP
        """
        from notebook_probe.explorer.notebooks.absent import in_a_notebook, say_no_notebook

        try:
            panel = self._open_panel()
        except ModuleNotFoundError:
            if in_a_notebook():
                raise
            say_no_notebook(self.name)
            return None
        if places := [str(fspath(one)) for one in others]:
            panel.compare(places, grouped)
        return panel.show()

    @property
    def explorer(self: _Acting) -> Explorer:
        """The Explorer as a widget that is not shown yet, to be placed among your own.

        Examples
        --------
        >>> ipywidgets.VBox([ipywidgets.Label("mine"), run.explorer])  # doctest: +SKIP
        """
        return self._open_panel().explorer

    def to_html(self: _Acting, path: str | PathLike[str]) -> Path:
        """Write the panel into one HTML file that needs no kernel, no network and no other file.

        It hovers, zooms and picks modules and quantities, on numbers that are thinned to 600
        columns; with the alerts, and the vectors and looks that there is room for, in 2 MB. What
        is left out is named in it. It begins with what the panel shows, if there is one.

        Parameters
        ----------
        path : path
            Of the file; one that is there is written over.

        Returns
        -------
        Path
            The same.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").to_html("first.html")  # doctest: +SKIP
        PosixPath('first.html')
        """
        if self._panel is not None:
            return self._panel.to_html(path)
        from notebook_probe.explorer import to_html

        return to_html(self, self._controls(), path)

    def _open_panel(self: _Acting) -> Panel:
        """The one panel of this source, which goes when it goes."""
        from notebook_probe.explorer import Panel

        if self._panel is None:
            self._panel = Panel(self, self._controls())
        return self._panel

    def take_panel(self: _Acting, before: _Acting) -> None:
        """Be shown where ``before`` was: its panel goes over to this source."""
        panel, before._panel = before._panel, None
        if panel is not None:
            self._panel = panel
            panel.go_over(self, self._controls())

    @property
    def alerts(self: _Acting) -> Alerts:
        """What the rules have found so far: each once, with its step, its place and the numbers.

        They are kept in the record, as events of kind ``"alert"``. Of a live run the rules are
        applied every second or so while rows are written, off the training thread; looking at the
        alerts applies them now.

        Examples
        --------
        >>> run.alerts  # doctest: +SKIP
        step 412: dead_units at layer2.relu: 63% of the units were never above zero, ...
        """
        self._bring_alerts()
        return read_alerts(self.events)

    def find_alerts(self: _Acting, *rules: Rule) -> Alerts:
        """What these rules find in all that is recorded; nothing is kept.

        So thresholds can be tried. Without rules, those that a live run follows, or all registered
        ones.

        Raises
        ------
        RuleError
            When a rule fails.

        Examples
        --------
        >>> from notebook_probe.alerts import RULES
        >>> run.find_alerts(RULES["dead_units"].but(most=0.3))  # doctest: +SKIP
        """
        return find_alerts(self, *(rules or self._followed_rules()))

    def backfill(
        self: _Acting,
        module: str,
        quantity: str,
        steps: npt.ArrayLike,
        values: npt.ArrayLike,
        units: str = "1",
        long_name: str = "",
    ) -> None:
        """Write a series into any steps, passed ones as well; from any thread.

        Of each module, quantity and step the value written last is read; nothing that was
        recorded is changed on disk.

        Parameters
        ----------
        module : str
            Path of a module or a parameter, ``""`` for the whole model.
        quantity : str
            Of the record, or a new one of your own; an alias means what it stands for.
        steps, values
            A step and its value, or as many of both, in any order; a vector per step where the
            quantity is one.
        units, long_name : str
            Of a quantity that is new.

        Raises
        ------
        UnknownNameError, ValueError, QuantityError, ClosedRunError
            Before anything is written.
        RecordLockedError
            An opened run is being recorded; use `Run.backfill` there.
        RecordWriteError
            When it cannot be written.

        Examples
        --------
        >>> run.backfill("fc1", "rank", [0, 1000], [64, 17])  # doctest: +SKIP
        >>> run.backfill("", "test_accuracy", [0, 1000], [0.1, 0.93])  # doctest: +SKIP
        """
        name = self.recorded_name(quantity)
        is_recorded = name in _recorded(self.snapshot())
        name, attrs = (name, {}) if is_recorded else _defined(name)
        with self._writing() as writer:
            writer.backfill(module, name, steps, values, units, long_name, attrs)


def _recorded(now: Snapshot) -> set[str]:
    """Names of quantities, and of scalars that are columns."""
    names = {name for stream in now.named for name in stream.modules}
    return names | {variable.name for variable in now.variables}


def _defined(quantity: str) -> tuple[str, dict[str, str]]:
    """What a quantity is called that is not recorded yet, with its other names."""
    try:
        from notebook_probe.quantities import quantities
    except ImportError:  # without torch nothing is known of quantities
        return quantity, {}
    if quantity not in quantities:
        return quantity, {}
    own = quantities[quantity]
    return own.name, {ALIASES: ", ".join(own.aliases)} if own.aliases else {}
