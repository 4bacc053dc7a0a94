"""Controls of a live run for its panel."""

from __future__ import annotations

from collections.abc import Callable

from notebook_probe.alerts import Rules
from notebook_probe.quantities import quantities
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.attach.fitting import fitting
from notebook_probe.run.attach.preset_table import typical_percent
from notebook_probe.run.attach.presets import presets
from notebook_probe.run.attach.requests import (
    BuildGraph,
    EditRule,
    Fitting,
    LookAt,
    Request,
    Ticket,
)
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.ending import Life
from notebook_probe.run.health.status import PresetInfo, ProbeStatus, QuantityInfo, StatusHead
from notebook_probe.run.parts import RunParts
from notebook_probe.run.settings.rule_edits import edited
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["PanelControls"]


class PanelControls(LiveActions):
    """`Controls` of a live run, in the process that trains it."""

    def __init__(self, name: str, parts: RunParts, life: Life) -> None:
        super().__init__(name, parts, life)
        self._parent: RunSource | None = None
        self._knows_parent = False

    @property
    def is_here(self) -> bool:
        """True: this process trains the run."""
        return True

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary, from any thread.

        The graph of a run at rest is built at once, and a module is looked at if the last inputs
        still exist.
        """
        parts = self._parts
        is_of_rest = isinstance(request, BuildGraph | LookAt)
        if not is_of_rest or parts.state.state(self.closed) != "idle":
            return parts.put(request)
        if isinstance(request, LookAt):
            return parts.look_at_rest(request) or parts.put(request)
        return parts.put_at_rest(request)

    def status_head(self) -> StatusHead:
        """Return the status without its probes: state, step, speed and cost, in microseconds."""
        parts = self._parts
        head = parts.state.head(self.name, parts.probes.n_wanted, self.closed, parts.probes.device)
        return head.with_way_back(parts.way_back.going_to, parts.way_back.until)

    def probes(self) -> list[ProbeStatus]:
        """Return the status of every probe."""
        parts = self._parts
        parts.steps.record()  # which counts its values
        return parts.probe_statuses.of(parts.probes.wanted, parts.gate.step)

    def attachable(self) -> list[QuantityInfo]:
        """Return every quantity that can be attached."""
        parts = self._parts
        return parts.catalogue.rows(parts.probes.wanted, parts.probe_statuses.costs())

    def preset_infos(self) -> list[PresetInfo]:
        """Return every preset, with its share of a step's time if that has been measured."""
        return [PresetInfo(one.name, one.about, typical_percent(one)) for one in presets.values()]

    def fitting(self) -> Fitting:
        """Return where each quantity can be attached in the present model."""
        return fitting(self._parts.probes.model_map, quantities.values())

    def looked_at(self) -> None:
        """Note that a user looks at other series: the next steps are measured whole."""
        if not self.closed:
            self._parts.whole.ask(self._parts.gate.step, "other series are looked at")

    def knobs(self) -> list[KnobInfo]:
        """Return everything that can be set now: options of the optimizers, then your own."""
        return self._live.settings.infos()

    def pending_looks(self) -> tuple[list[tuple[str, int]], dict[tuple[str, int], str]]:
        """Return module and step of pending looks, and why others have no result."""
        looks = self._parts.looks
        return looks.asked, looks.missed

    def breakpoint_infos(self) -> list[BreakpointInfo]:
        """Return the breakpoints as plain values."""
        return self._parts.breakpoints.infos()

    @property
    def rules(self) -> Rules:
        """The alert rules that are followed, each of which can be edited."""
        return self._parts.rules

    def edit_rule(self, name: str, **numbers: float) -> Ticket:
        """Give an alert rule other numbers while it trains, from any thread.

        Like ``run.rules.edit``, but as a request: it acts at once if no step is
        open, else from the next one on, and the ticket has the result.

        Raises
        ------
        UnknownNameError, RuleError
            For a rule that is not followed, and a number that it has not, or that cannot be.
        ClosedRunError

        Examples
        --------
        >>> run.controls.edit_rule("dead_units", most=0.3, rows=2)  # doctest: +SKIP
        """
        live = self._live
        request = EditRule(name, numbers)
        # Computed and dropped: raises here for numbers that the rule does not have.
        edited(live.rules, request)
        return live.put_between_steps(request)

    def rule_names(self) -> list[str]:
        """Return the followed alert rules."""
        return [*self._parts.rules]

    def severe_rules(self) -> list[str]:
        """Return the rules that ``alert="severe"`` includes."""
        return [name for name, rule in self._parts.rules.items() if rule.severity == "severe"]

    @property
    def restores(self) -> str:
        """State that the loop restores when it goes back, as text; "" if it cannot go back."""
        return self._parts.way_back.restores

    @property
    def parent(self) -> RunSource | None:
        """Parent branch: the run, or its record if another process trained it."""
        if not self._knows_parent:
            self._knows_parent = True
            source = self._parts.source
            before = len(source.snapshot().branches.starts) - 1
            self._parent = OpenedRecord(source.location, before) if before else None
        return self._parent

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every boundary; returns its removal."""
        return self._followed_until(self._parts.gate.each_boundary(callback))

    def follow(self) -> Callable[[], None]:
        """Note that a panel shows the run, until the returned function is called."""
        return self._followed_until(self._parts.gate.follow())

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread after answers to requests and when it pauses."""
        return self._parts.gate.each_news(callback)

    def settle(self, error: BaseException | None = None) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        While another thread trains, its step is not changed.

        Parameters
        ----------
        error : BaseException, optional
            Exception that ended the cell. If it has trained, the run has failed until training
            continues; an interrupt and Stop are no failures.
        """
        parts = self._parts
        if not parts.gate.is_elsewhere:
            parts.end_loop(error if parts.state.has_trained else None)

    def _followed_until(self, remove: Callable[[], None]) -> Callable[[], None]:
        """Return a function that also forgets the last call, if nothing else follows the run."""
        gate, calls = self._parts.gate, self._parts.observer.calls
        calls.follow(is_followed=True)

        def end() -> None:
            remove()
            calls.follow(is_followed=gate.is_followed)

        return end

    def resume_by(self, how: str) -> None:
        """Note how another process can continue a paused training, as text."""
        self._live.gate.resumed_by = how
