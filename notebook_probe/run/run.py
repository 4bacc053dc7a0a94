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
from notebook_probe.alerts.alert import read_rules_off
from notebook_probe.errors import shown_as
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities import own_name
from notebook_probe.record.export.exports import Exports
from notebook_probe.record.format.source import (
    Event,
    ModuleRow,
    StreamView,
    VectorView,
)
from notebook_probe.record.views.xarray_views import RunSource, Snapshot
from notebook_probe.record.write.closing import losses_as_warnings
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.actions.control_actions import ControlActions
from notebook_probe.run.actions.graph_actions import GraphActions
from notebook_probe.run.actions.log_actions import LogActions
from notebook_probe.run.actions.look_actions import LookActions
from notebook_probe.run.actions.loop_actions import LoopActions
from notebook_probe.run.actions.probe_actions import ProbeActions
from notebook_probe.run.actions.setting_actions import SettingActions
from notebook_probe.run.actions.source_actions import SourceActions
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.module_table import OnCompiled, check_on_compiled
from notebook_probe.run.attach.request import QuantityLike, resolve
from notebook_probe.run.controls import Controls
from notebook_probe.run.ending import Life
from notebook_probe.run.handle import Handle
from notebook_probe.run.health.status import ProbeStatus, QuantityInfo, Status
from notebook_probe.run.parts import RunParts
from notebook_probe.run.run_controls import RunControls
from notebook_probe.schedules import ScheduleLike
from notebook_probe.uninterrupted import whole

__all__ = ["Run"]


@shown_as("run")
class Run(
    LogActions,
    LoopActions,
    ControlActions,
    LookActions,
    GraphActions,
    ProbeActions,
    SettingActions,
    SourceActions,
    Exports,
):
    """A watched model; made by `notebook_probe.watch`.

    It is a Source: everything recorded so far can be read at any time. It has a weak reference to
    the model; dropping the run removes every hook. ``with run:`` closes it at the end.

    Attributes
    ----------
    name : str
    controls : RunControls
        Controls for the panel, loops and collectors; users call the methods of this class.
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        name: str,
        first_probes: Attachment,
        fresh: bool,
        on_compiled: OnCompiled = "inside",
        budget: float | None = None,
        optimizer: Optimizer | None = None,
        rank: int | None = None,
        flight: int = 0,
        references: Sequence[RunSource] = (),
    ) -> None:
        parts = RunParts.of(
            model=model,
            model_map=model_map,
            writer=writer,
            percent=budget,
            rank=rank,
            n_flight=flight,
            references=references,
        )
        super().__init__(name, parts, Life(self, model, parts, fresh))
        self.controls = RunControls(name, parts, self._life, fresh)
        """Methods for the code of a panel, a loop or a collector; the other ones are for users."""
        self._parts.probes.run_compiled(on_compiled)
        if optimizer is not None:
            self._parts.observer.updates.meet(optimizer)
        self._parts.begin(first_probes)  # last: from here on other threads may meet our hooks

    # ---------------------------------------------------------------- probes

    @whole
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
            Record the calls of a module in one step separately: entries ``cell[0]``, ``cell[1]``,
            ... on the module axis. Otherwise they are pooled, and ``calls`` counts them.

        Returns
        -------
        Handle
            ``handle.remove()`` removes the probes again.

        Raises
        ------
        UnknownNameError, ScheduleError, QuantityError, NotApplicableError, ClosedRunError
            Nothing was attached.

        Examples
        --------
        >>> handle = run.attach("layer3.*", "zero_fraction", "every(50)")  # doctest: +SKIP
        """
        live = self._live
        when = partial(resolve, when=schedule, phase=phase, per_call=per_call)
        resolver = partial(when, where=where, quantity=quantity)
        attachment = live.probes.attach(resolver)
        live.change_between_steps()
        return Handle(self, attachment)

    @whole
    def detach(self, handle: Handle | Where, quantity: str = "") -> None:
        """Remove probes: those of a handle, or ``quantity`` (all if empty) at a selection."""
        live = self._live
        probes = handle.probes if isinstance(handle, Handle) else live.probes.find(handle, quantity)
        live.probes.detach(probes)
        live.change_between_steps()

    # ---------------------------------------------------------------- controls

    def probes(self) -> list[ProbeStatus]:
        """Every probe and its state."""
        return self.controls.probes()

    def attachable(self) -> list[QuantityInfo]:
        """Return every quantity that can be attached, and the places where it is.

        Examples
        --------
        >>> [one.name for one in run.attachable()][:2]  # doctest: +SKIP
        ['weight_norm', 'grad_norm']
        """
        return self.controls.attachable()

    def status(self) -> Status:
        """Return the current status: step, speed, cost, every probe, and the writer's reports.

        For each probe it has the step of the last value, the reason if there is none, and the cost.
        In a notebook ``run.status()`` sums it up.
        """
        probes = tuple(self.probes())
        n_bytes = self._parts.writer.bytes_by_quantity()
        off = read_rules_off(self.events)
        return Status.of(self.controls.status_head(), probes, n_bytes, off)

    # ---------------------------------------------------------------- training, showing, ending

    @property
    def on_compiled(self) -> OnCompiled:
        """Handling of probes of a compiled model's calls, ``"inside"``, ``"eager"`` or ``"skip"``.

        With ``"inside"`` the graphs compute quantities that are sums over outputs, inputs and
        output gradients: norms, means, deviations, extremes, counts of zeros and of nonfinite
        values, of whole tensors and per channel. Dynamo compiles one more variant of each graph,
        for steps in which something is due. With ``"eager"`` those steps run uncompiled, from the
        next step on, and everything is measured; eager and compiled kernels may differ in the last
        bits. ``"skip"`` measures nothing of compiled calls, and the status says so.
        """
        observer = self._parts.observer
        return (
            "eager" if observer.eager.wanted else "inside" if observer.in_graphs.wanted else "skip"
        )

    @on_compiled.setter
    def on_compiled(self, steps: OnCompiled) -> None:
        live = self._live
        check_on_compiled(steps)
        live.probes.run_compiled(steps)
        live.change_between_steps()

    def flush(self) -> None:
        """Write everything in memory now.

        Raises
        ------
        RecordWriteError
            The record cannot be written; the message says why. Waiting rows are tried again, and
            counted as lost once they are given up.

        Warns
        -----
        RecordWarning
            Writing takes longer than 10 s, or a store cannot be reached; the write continues
            meanwhile.
        """
        self._parts.steps.drain()
        if self.closed:
            self._life.await_end()
        else:
            self._parts.writer.flush_or_raise()

    def close(self) -> None:
        """Record the last step, remove every hook, and finish the record. Closing twice is fine.

        Raises
        ------
        RecordWriteError
            Some rows could not be written; the message says which, why, and where they are kept. A
            run that ends with its model, or at the program's exit, warns instead.
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
        """Path or URL of the record."""
        return self._parts.source.location

    @property
    def revision(self) -> int:
        """Number that grows whenever there is something new to read."""
        return self._parts.source.revision

    @property
    def finished(self) -> bool:
        """True once the record is complete."""
        return self._parts.source.finished

    @property
    def is_written(self) -> bool:
        """True while it records."""
        return not self.finished

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        """Modules and parameters of the model, in definition order."""
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
        """Events on this branch, and earlier events on its parent branches."""
        return self._parts.source.events

    @property
    def all_events(self) -> tuple[Event, ...]:
        """Events on every branch, in the order in which they were written."""
        return self._parts.source.all_events

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        return self._parts.source.snapshot()

    def recorded_name(self, quantity: str) -> str:
        """Return the recorded name of a quantity, which may be given by an alias.

        Examples
        --------
        >>> run.recorded_name("RankMe")  # doctest: +SKIP
        'effective_rank'
        """
        name = super().recorded_name(quantity)
        return own_name(name) if name == quantity else name

    @property
    def parent(self) -> RunSource | None:
        """Parent branch: the run, or its record if another process trained it.

        None for a run that never went back.
        """
        return self.controls.parent

    @property
    def rules(self) -> Rules:
        """Active rules: all registered ones; each can be edited.

        A change applies to the next rows; reported alerts stay. Each change is an event of kind
        ``"rule"``, its detail the JSON of ``{"rule", "from", "to"}``.

        Examples
        --------
        >>> run.rules.edit("dead_units", most=0.3)  # doctest: +SKIP
        >>> del run.rules["lr_high"]  # doctest: +SKIP
        """
        return self._parts.rules

    # ---------------------------------------------------------------- inside

    _former = MappingProxyType(
        {
            **SourceActions._former,
            "catalogue": "run.attachable()",
            "notify": "notebook_probe.notify(run, ...)",
        }
    )

    def _instead(self, name: str) -> str:
        moved = f"run.controls.{name}" if hasattr(RunControls, name) else ""
        return super()._instead(name) or moved

    def _controls(self) -> Controls:
        return self.controls

    def _followed_rules(self) -> Sequence[Rule]:
        return [*self.rules.values()]

    def _known_references(self) -> Sequence[RunSource]:
        return self._parts.references.references

    def _bring_alerts(self) -> None:
        if not self.closed:
            self._parts.steps.drain()
            self._parts.alarm.look_at_references()
            self._parts.alarm.look()
            self._parts.alarm.look_at_probes()

    @contextmanager
    def _writing(self) -> Iterator[RecordWriter]:
        live = self._live
        live.steps.drain()
        yield live.writer
