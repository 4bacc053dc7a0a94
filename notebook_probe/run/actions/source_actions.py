"""Actions of live and opened runs in addition to reading; without torch."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from notebook_probe.alerts import RULES, Alerts, Rule, find_alerts, read_alerts, read_remarks
from notebook_probe.alerts.builtin.references import DIFFERS
from notebook_probe.alerts.explaining import Explanation, explain
from notebook_probe.errors import ProbeError, shown_as
from notebook_probe.record.format.source import ALIASES
from notebook_probe.record.views.xarray_views import RunSource, Snapshot
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.actions.comparing_actions import ComparingActions, places_of_references
from notebook_probe.run.actions.former_names import FormerNames
from notebook_probe.run.actions.note_actions import NoteActions

if TYPE_CHECKING:
    import numpy.typing as npt

    from notebook_probe.explorer import Explorer, Panel
    from notebook_probe.run.controls import Controls

__all__ = ["SourceActions", "hand_over_panel"]


class _Acting(RunSource, Protocol):
    """Parts of the source that the actions need."""

    _panel: Panel | None

    def _open_panel(self) -> Panel: ...
    def _controls(self) -> Controls | None: ...
    def _followed_rules(self) -> Iterable[Rule]: ...
    def _bring_alerts(self) -> None: ...
    @property
    def _was_watched(self) -> bool: ...
    def _writing(self) -> AbstractContextManager[RecordWriter]: ...


@shown_as("run")
class SourceActions(NoteActions, ComparingActions, FormerNames):
    """Showing a run, looking at its alerts, and adding to its record.

    A subclass says in `_writing` who writes; a live run also says how it is controlled, which rules
    it follows, and how their findings are updated.
    """

    _panel: Panel | None = None
    _owner = "a run"
    _former = MappingProxyType(
        {
            "left": "run.parent",
            "cube": 'run.to_xarray("cube")',
            "tree": 'run.to_xarray("tree")',
            "dataset": "run.to_xarray(chunks=...)",
        }
    )

    def _instead(self, name: str) -> str:
        """Return where a quantity is, which others have as an attribute of a run."""
        if former := super()._instead(name):
            return former
        try:
            variables = cast(RunSource, self).snapshot().variables
        except (ProbeError, OSError):  # a record that is gone; hasattr() expects no other error
            return ""
        is_recorded = any(one.name == name for one in variables)
        return f"run.data.{name}, or run.series(module, {name!r})" if is_recorded else ""

    def _controls(self) -> Controls | None:
        """Return the panel's interface to a live run."""
        return None

    def _followed_rules(self) -> Iterable[Rule]:
        """Return the default rules; if empty, all registered ones are applied."""
        return ()

    def _bring_alerts(self) -> None:
        """Bring the alerts up to date."""

    @property
    def _was_watched(self) -> bool:
        """True if rules have looked at the training while it ran."""
        return True

    def explore(
        self: _Acting,
        others: Iterable[str | PathLike[str]] = (),
        grouped: bool = False,
        view: str = "",
    ) -> Explorer | None:
        """Show the Explorer under this cell; it keeps updating while the cells below run.

        A recorded run has the same panel, without controls. In a script it prints one line that
        there is no notebook, and training continues.

        Parameters
        ----------
        others : iterable of path or URL
            At most four other runs: their lines are overlaid, and the heat map is the ratio to the
            first one.
        grouped : bool
            True to show the other runs as one group, with their mean and spread.
        view : str
            Name of a view that was saved in a panel of a record in the same folder; by default the
            panel shows the last view of this record.

        Returns
        -------
        Explorer or None
            The widget; None in a script where the packages of the panel are not installed.

        Raises
        ------
        ModuleNotFoundError
            The packages of the panel are not installed, in a notebook.
        UnknownNameError
            No view has this name.

        Warns
        -----
        RecordWarning
            More than four runs are given.

        Examples
        --------
        >>> run.explore(others=["runs/digits-cnn-8.zarr"])  # doctest: +SKIP
        """
        from notebook_probe.explorer.notebooks.absent import in_a_notebook, say_no_notebook

        try:
            panel = self._open_panel()
        except ModuleNotFoundError:
            # In a notebook a missing widget package is to be installed; a script has no use for it.
            if in_a_notebook():
                raise
            say_no_notebook(self.name)
            return None
        if view:
            panel.show_view(view)
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

    def to_html(self: _Acting, path: str | PathLike[str], view: str = "") -> Path:
        """Write the panel into one HTML file that needs no kernel, no network and no other file.

        The file has tooltips, zoom and the selection of modules and quantities, for numbers that
        are thinned to 600 columns; it has the alerts, and the vectors and looks that fit into 2 MB.
        It names omitted parts. It starts with the panel's current selection, if there is a panel.

        Parameters
        ----------
        path : path
            Path of the file, which ends with ``.html``; an existing one is overwritten, a missing
            folder is made.
        view : str
            Name of a saved view that the file shows instead of the current selection.

        Returns
        -------
        Path
            The given path.

        Raises
        ------
        ValueError
            The path has another ending.

        Examples
        --------
        >>> nbp.open_run("runs/first.zarr").to_html("first.html")  # doctest: +SKIP
        PosixPath('first.html')
        """
        if self._panel is not None:
            return self._panel.to_html(path, view)
        from notebook_probe.explorer import to_html

        return to_html(self, self._controls(), path, view)

    def _open_panel(self: _Acting) -> Panel:
        """Return the only panel of this source, whose lifetime it shares."""
        from notebook_probe.explorer import Panel

        if self._panel is None:
            self._panel = Panel(self, self._controls())
        return self._panel

    @property
    def alerts(self: _Acting) -> Alerts:
        """Alerts so far: each once, with its step, its place and the numbers.

        They are stored in the record, as events of kind ``"alert"``. In a live run the rules are
        applied every second or so while rows are written, outside the training thread; reading the
        alerts applies them now.

        Examples
        --------
        >>> run.alerts  # doctest: +SKIP
        step 180: dead_units at layer2.relu: 97% of the units were never above zero, ...
        """
        self._bring_alerts()
        return read_alerts(self.events)

    @property
    def remarks(self: _Acting) -> Alerts:
        """Findings that may be intended, such as a module whose output the loss does not use.

        They are events of kind ``"remark"``: no alert, no mark in the tree, no breakpoint.

        Examples
        --------
        >>> run.remarks  # doctest: +SKIP
        step 20: unused_module at pooler: it is called, and the loss does not use its output, ...
        """
        self._bring_alerts()
        return read_remarks(self.events)

    def explain(self: _Acting, step: int | None = None) -> Explanation:
        """Return a diagnosis of the training, in at most 40 lines.

        Causes come first, each before its consequences, then findings that may be intended, rules
        that found nothing, and rules that could not judge because nothing was measured.

        Parameters
        ----------
        step : int, optional
            Explain the findings up to this step, which must be recorded; omit later ones.

        Examples
        --------
        >>> run.explain(step=299)  # doctest: +SKIP
        300 steps: 1 cause, no remarks ...
        """
        self._bring_alerts()
        rules = [*(self._followed_rules() or RULES.values())]
        if not places_of_references(self):  # the rule has looked at nothing
            rules = [one for one in rules if one.name != DIFFERS]
        return explain(self, rules, step, was_watched=self._was_watched)

    def find_alerts(self: _Acting, *rules: Rule) -> Alerts:
        """Apply rules to the whole record; store nothing.

        Use it to try thresholds. By default the rules of the live run, or all registered ones.

        Raises
        ------
        RuleError
            A rule fails.

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
        """Write a series into any steps, also past ones; from any thread.

        For each module, quantity and step, the value written last is read; recorded values are not
        changed on disk.

        Parameters
        ----------
        module : str
            Path of a module or a parameter, ``""`` for the whole model.
        quantity : str
            Quantity of the record, or a new one; an alias means its quantity.
        steps, values
            One step and one value, or as many steps as values, in any order; for a vector quantity,
            one vector per step.
        units, long_name : str
            Attributes of a new quantity.

        Raises
        ------
        UnknownNameError, ValueError, QuantityError, ClosedRunError
            Nothing was written.
        RecordLockedError
            An opened run is being recorded; use `Run.backfill` there.
        RecordWriteError
            The record cannot be written.

        Examples
        --------
        >>> run.backfill("fc1", "rank", [0, 1000], [64, 17])  # doctest: +SKIP
        >>> run.backfill("", "test_accuracy", [0, 1000], [0.1, 0.93])  # doctest: +SKIP
        """
        # An alias leads to the column that exists; a new column gets the quantity's aliases.
        name = self.recorded_name(quantity)
        is_recorded = name in _recorded(self.snapshot())
        name, attrs = (name, {}) if is_recorded else _defined(name)
        with self._writing() as writer:
            writer.backfill(
                module, name, steps, values, units=units, long_name=long_name, attrs=attrs
            )


def hand_over_panel(before: _Acting, after: _Acting) -> None:
    """Show ``after`` in the panel of ``before``, if there is one."""
    panel, before._panel = before._panel, None
    if panel is not None:
        after._panel = panel
        panel.go_over(after, after._controls())


def _recorded(now: Snapshot) -> set[str]:
    """Names of quantities, and of scalars that are columns."""
    names = {name for stream in now.named for name in stream.modules}
    return names | {variable.name for variable in now.variables}


def _defined(quantity: str) -> tuple[str, dict[str, str]]:
    """Return the name of an unrecorded quantity, with its other names."""
    try:
        from notebook_probe.quantities import quantities
    except ImportError:  # without torch nothing is known of quantities
        return quantity, {}
    if quantity not in quantities:
        return quantity, {}
    own = quantities[quantity]
    return own.name, {ALIASES: ", ".join(own.aliases)} if own.aliases else {}
