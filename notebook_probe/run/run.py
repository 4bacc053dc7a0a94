"""A run: one watched model, its probes, its record and its controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

from torch import nn
from torch.optim import Optimizer

from notebook_probe.alerts import Rule, Rules
from notebook_probe.errors import ClosedRunError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities import own_name, quantities
from notebook_probe.record.export.exports import Exports
from notebook_probe.record.format.source import Event, ModuleRow, StreamView, VectorView
from notebook_probe.record.views.xarray_views import Snapshot
from notebook_probe.record.write.closing import losses_as_warnings
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.actions.branch_actions import BranchActions
from notebook_probe.run.actions.control_actions import ControlActions
from notebook_probe.run.actions.graph_actions import GraphActions
from notebook_probe.run.actions.log_actions import LogActions
from notebook_probe.run.actions.look_actions import LookActions
from notebook_probe.run.actions.loop_actions import LoopActions
from notebook_probe.run.actions.probe_actions import ProbeActions
from notebook_probe.run.actions.setting_actions import SettingActions
from notebook_probe.run.actions.source_actions import SourceActions
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.fitting import fitting
from notebook_probe.run.attach.module_table import OnCompiled, check_on_compiled
from notebook_probe.run.attach.request import QuantityLike, resolve
from notebook_probe.run.attach.requests import Fitting
from notebook_probe.run.controls import Controls
from notebook_probe.run.ending import Life
from notebook_probe.run.handle import Handle
from notebook_probe.run.health.status import ProbeStatus, QuantityInfo, Status, StatusHead
from notebook_probe.run.parts import RunParts
from notebook_probe.run.settings.settings import Settings
from notebook_probe.schedules import ScheduleLike

__all__ = ["Run"]


class Run(
    LogActions,
    LoopActions,
    ControlActions,
    LookActions,
    GraphActions,
    ProbeActions,
    SettingActions,
    BranchActions,
    SourceActions,
    Exports,
):
    """A watched model; made by `notebook_probe.watch`.

    It is a Source: everything recorded so far can be read at any time. It holds the model weakly,
    and dropping it takes every hook off. ``with run:`` closes it at the end.

    Attributes
    ----------
    name : str
    options : mapping
        How it was begun to be watched, but for what is measured and where it is kept.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        name: str,
        first_probes: Attachment,
        fresh: bool,
        on_compiled: OnCompiled = "skip",
        budget: float | None = None,
        optimizer: Optimizer | None = None,
        rank: int | None = None,
        flight: int = 0,
    ) -> None:
        self.name = name
        self.options: Mapping[str, Any] = MappingProxyType({})
        self._is_fresh = fresh
        self._parts = RunParts.of(model, model_map, writer, budget, rank, flight)
        self._parts.probes.run_eagerly(on_compiled == "eager")
        self._life = Life(self, model, self._parts, fresh)
        if optimizer is not None:
            self._parts.observer.updates.meet(optimizer)
        self._parts.begin(first_probes)  # last: from here on other threads may meet our hooks

    # ---------------------------------------------------------------- probes

    def attach(
        self,
        where: Where | Mapping[Any, Any],
        quantity: QuantityLike | Sequence[QuantityLike] | None = None,
        schedule: ScheduleLike = None,
        *,
        phase: PhaseName = "training",
        per_call: bool = False,
    ) -> Handle:
        """Measure ``quantity`` at every module of ``where`` whenever ``schedule`` is due.

        Acts at the next step boundary, while training runs or before; attaching twice changes
        nothing.

        Parameters
        ----------
        where : str, class, callable, iterable or dict
            A path (``"fc1"``, ``"fc1.bias"``), glob (``"layer*.conv2"``), class, class name, or
            ``(path, module) -> bool``. A dict is Taiyi's spelling: ``{nn.Linear: ["WeightNorm"]}``.
        quantity : str, Quantity, function or a list of these
            A function's parameter names are the tensors it needs.
        schedule : str, int, Schedule or callable
            ``"every(50)"``, ``"linear(5, 0)"``, ``50``, ``step -> bool``; every step by default.
        phase : "training" or "eval"
            ``"eval"`` measures forward passes outside of training, as variables ``eval_...``;
            their step is the number of updates completed.
        per_call : bool
            Keep the calls of a module in one step apart: entries ``cell[0]``, ``cell[1]``, ... on
            the module axis. Otherwise they are pooled, and ``calls`` counts them.

        Returns
        -------
        Handle
            ``handle.remove()`` takes the probes off again.

        Raises
        ------
        UnknownNameError, ScheduleError, QuantityError, NotApplicableError, ClosedRunError
            Before anything is attached.

        Examples
        --------
        >>> handle = run.attach("layer3.*", "zero_fraction", "every(50)")  # doctest: +SKIP
        """
        live = self._live
        resolver = partial(
            resolve,
            where=where,
            quantity=quantity,
            when=schedule,
            phase=phase,
            per_call=per_call,
        )
        attachment = live.probes.attach(resolver)
        live.change_between_steps()
        return Handle(self, attachment)

    def detach(self, handle: Handle | Where, quantity: str = "") -> None:
        """Take probes off: those of a handle, or ``quantity`` (all when empty) at a selection."""
        live = self._live
        probes = handle.probes if isinstance(handle, Handle) else live.probes.find(handle, quantity)
        live.probes.detach(probes)
        live.change_between_steps()

    # ---------------------------------------------------------------- controls

    def probes(self) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        parts = self._parts
        parts.steps.record()  # which counts its values
        return parts.probe_statuses.of(parts.probes.wanted, parts.gate.step)

    def catalogue(self) -> list[QuantityInfo]:
        """Every quantity that can be attached."""
        parts = self._parts
        return parts.catalogue.rows(parts.probes.wanted, parts.probe_statuses.costs())

    def fitting(self) -> Fitting:
        """Where each of them can be attached, in the model as it is now."""
        return fitting(self._parts.probes.model_map, quantities.values())

    @property
    def open_step(self) -> int:
        """Number of the step that is trained now or was trained last; a forward begins the next."""
        return self._parts.gate.step

    def settle(self, error: BaseException | None = None) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        While another thread trains its step is left alone.

        Parameters
        ----------
        error : BaseException, optional
            What ended the cell. If it has trained, the run has failed until training goes on;
            an interrupt and Stop are no failures.
        """
        parts = self._parts
        if not parts.gate.is_elsewhere:
            parts.end_loop(error if parts.state.has_trained else None)

    def status(self) -> Status:
        """The run now: step, speed, cost, every probe, what the writer says.

        For each probe it says when it last fired, why it did not, and what it costs.
        In a notebook ``run.status()`` sums it up.
        """
        probes = tuple(self.probes())
        return Status.of(self.status_head(), probes, self._parts.writer.bytes_by_quantity())

    def status_head(self) -> StatusHead:
        """The status without its probes: state, step, speed and cost, in microseconds."""
        parts = self._parts
        return parts.state.head(self.name, parts.probes.n_wanted, closed=self.closed)

    # ---------------------------------------------------------------- training, showing, ending

    @property
    def on_compiled(self) -> OnCompiled:
        """What happens to probes of a compiled model's calls, ``"skip"`` or ``"eager"``.

        A compiled model runs no hooks, so that they are skipped, and the status says so. With
        ``"eager"`` only the steps in which something is due run uncompiled, from the next step
        on; nothing is compiled again. Eager and compiled kernels may differ in the last bits.
        """
        return "eager" if self._parts.observer.eager.wanted else "skip"

    @on_compiled.setter
    def on_compiled(self, steps: OnCompiled) -> None:
        live = self._live
        check_on_compiled(steps)
        live.probes.run_eagerly(steps == "eager")
        live.change_between_steps()

    def flush(self) -> None:
        """Write what is still in memory now.

        Raises
        ------
        RecordWriteError
            When it cannot be written; the message says why. What waits is tried again, as ever,
            and counted as lost once it is given up.

        Warns
        -----
        RecordWarning
            When it takes longer than 10 s, or a store cannot be reached; it goes on meanwhile.
        """
        self._parts.steps.drain()
        if not self.closed:
            self._parts.writer.flush_or_raise()

    @property
    def closed(self) -> bool:
        return self._life.is_over

    def close(self) -> None:
        """Record the last step, take every hook off, and finish the record. Twice is fine.

        Raises
        ------
        RecordWriteError
            When something could not be written; the message says what, why, and where it is kept.
            A run that ends by itself, with its model or at the program's exit, warns of it.
        """
        if not self.closed:
            self._parts.gate.end()
            self.probes()  # why some are silent is known as long as there is a model
        self._life.end()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is not None:
            self._parts.loop_raised(error)
        with nullcontext() if error is None else losses_as_warnings():
            self.close()

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self._parts.state.state(self.closed)}, {self.location}>"

    # ---------------------------------------------------------------- reading

    @property
    def location(self) -> str:
        return self._parts.source.location

    @property
    def revision(self) -> int:
        return self._parts.source.revision

    @property
    def finished(self) -> bool:
        return self._parts.source.finished

    @property
    def is_written(self) -> bool:
        """Whether it still records."""
        return not self.finished

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        return self._parts.source.modules

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return self._parts.source.streams

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        """Streams of vectors, by path: ``"hist/every_1"``."""
        return self._parts.source.vectors

    @property
    def elements(self) -> Mapping[str, StreamView]:
        """Streams of vectors of every kind, a column for each element: ``conv1[3/64]``."""
        return self._parts.source.elements

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened on this branch, and before it on those that it came from."""
        return self._parts.source.events

    @property
    def all_events(self) -> tuple[Event, ...]:
        """What happened on every branch, in the order in which it was written."""
        return self._parts.source.all_events

    def snapshot(self) -> Snapshot:
        return self._parts.source.snapshot()

    def recorded_name(self, quantity: str) -> str:
        """The name under which a quantity is, or would be, recorded that may be called by an alias.

        Examples
        --------
        >>> run.recorded_name("RankMe")  # doctest: +SKIP
        'effective_rank'
        """
        name = super().recorded_name(quantity)
        return own_name(name) if name == quantity else name

    @property
    def settings(self) -> Settings:
        """All that can be set, for whoever trains steps again; also once the run is closed."""
        return self._parts.settings

    @property
    def rules(self) -> Rules:
        """The rules that are followed: every registered one, each of which can be edited.

        What is changed counts from the next rows on; what was said stays said. Each change is an
        event of kind ``"rule"``, its detail the JSON of ``{"rule", "from", "to"}``.

        Examples
        --------
        >>> run.rules.edit("dead_units", most=0.3)  # doctest: +SKIP
        >>> del run.rules["lr_high"]  # doctest: +SKIP
        """
        return self._parts.rules

    # ---------------------------------------------------------------- inside

    def replaces_on(self, model: nn.Module) -> bool:
        """Tell whether watching ``model`` again, to a fresh folder too, is this run over again."""
        return self._is_fresh and self.watches(model)

    def watches(self, model: nn.Module) -> bool:
        """Tell the watched model, without wrappers, from others."""
        return self._parts.probes.watches(model)

    @property
    def _live(self) -> RunParts:
        if self.closed:
            why = ", because its model no longer exists" if self._life.model_is_gone else ""
            raise ClosedRunError(
                f"run {self.name!r} is closed{why}; its record at {self.location} can still be "
                f"read, and nbp.watch(model) begins another"
            )
        return self._parts

    def _controls(self) -> Controls:
        return self

    def _followed_rules(self) -> Sequence[Rule]:
        return [*self.rules.values()]

    def _bring_alerts(self) -> None:
        if not self.closed:
            self._parts.steps.drain()
            self._parts.alarm.look()
            self._parts.alarm.look_at_probes()

    @contextmanager
    def _writing(self) -> Iterator[RecordWriter]:
        live = self._live
        live.steps.drain()
        yield live.writer
