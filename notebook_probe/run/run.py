"""A run: one watched model, its probes, its record and its controls."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

from notebook_probe.errors import ClosedRunError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.compiled import is_compiled
from notebook_probe.probes.step.probe import PhaseName, Probe
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.alerting import Alarm, Alerting
from notebook_probe.run.attach.module_table import OnCompiled, check_on_compiled
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.request import QuantityLike, ResolvedRequest, read_asked
from notebook_probe.run.attach.requests import Control, Request, Ticket
from notebook_probe.run.backfill import Past
from notebook_probe.run.background import Background
from notebook_probe.run.ending import EndOnThread, end
from notebook_probe.run.from_loop import FromLoop
from notebook_probe.run.gate import Gate
from notebook_probe.run.handle import Handle
from notebook_probe.run.health.meter import Meter
from notebook_probe.run.health.state import RunState
from notebook_probe.run.health.status import ProbeStatus, QuantityInfo, Status
from notebook_probe.run.health.why_silent import Doctor
from notebook_probe.run.probe_batch import Probing
from notebook_probe.run.rows.row_keeper import RowKeeper
from notebook_probe.schedules import ScheduleLike

if TYPE_CHECKING:
    from notebook_probe.explorer import Explorer

__all__ = ["Run"]


class Run(Alerting, FromLoop, Probing, Past):
    """A watched model; made by `notebook_probe.watch`.

    It is a Source: everything recorded so far can be read at any time. It holds the model weakly,
    and dropping it takes every hook off. ``with run:`` closes it at the end.

    Attributes
    ----------
    name : str
    """

    def __init__(
        self,
        model: nn.Module,
        model_map: ModelMap,
        writer: RecordWriter,
        name: str,
        asked: Callable[[ModelMap], ResolvedRequest],
        fresh: bool,
        on_compiled: OnCompiled = "skip",
    ) -> None:
        self.name = name
        self._meter = Meter()
        self._stretch = Budget(tell=partial(_tell_budget, writer))
        rows = RowKeeper(writer, partial(_spent, self._meter, self._stretch))
        first = writer.first_step
        self._gate = Gate(first)
        observer = Observer(
            model,
            model_map,
            first,
            rows.publish,
            rows.keep,
            self._gate,
            rows.declare_collected,
            self._stretch,
        )
        super().__init__(writer, rows, observer)
        self._probes = ProbeSet(
            model, model_map, observer, rows.declare, writer.follow_model, writer.event
        )
        self._doctor = Doctor(model, observer, rows.scalars)
        self._gate.apply, self._gate.change = self._probes.apply, self._probes.change
        rows.when_full = self._probes.detach_all
        observer.taps.is_static = is_compiled(model)
        self._probes.run_eagerly(on_compiled == "eager")
        if writer.continued:
            writer.event(first, "resume", "the training goes on")
        observer.evaluation.last_step = writer.last_evaluated
        self._probes.begin(asked, first, told=writer.continued)
        self._condition = RunState(writer, rows, observer, self._gate, self._meter, self._stretch)
        self._explorer: Explorer | None = None
        self._is_fresh = fresh
        alarm = self._alarm = Alarm(
            writer, rows, partial(_with_status, self._probes, self._doctor, self._gate)
        )
        alarm.look()  # back at what a resumed record holds
        writer.feed(alarm.bring)
        self._ended = weakref.finalize(
            self, end, self._gate, self._observer, self._rows, alarm, writer, fresh
        )
        # A model that is dropped ends its run; from the garbage collector, so on another thread.
        self._end_with_model = EndOnThread(self._ended)
        self._model_gone = weakref.ref(model, self._end_with_model)

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
        self._check_open()
        ask = partial(
            read_asked,
            where=where,
            quantity=quantity,
            when=schedule,
            phase=phase,
            per_call=per_call,
        )
        standing = self._probes.attach(ask)
        self._change_between_steps()
        return Handle(self, standing)

    def detach(self, handle: Handle | Where, quantity: str = "") -> None:
        """Take probes off: those of a handle, or ``quantity`` (all when empty) at a selection."""
        self._check_open()
        probes = (
            handle.probes if isinstance(handle, Handle) else self._probes.find(handle, quantity)
        )
        self._probes.detach(probes)
        self._change_between_steps()

    # ---------------------------------------------------------------- controls

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary, from any thread."""
        return self._gate.put(request)

    def probes(self) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        self._rows.hand_over()  # which counts its values
        seconds = self._meter.step_seconds
        return self._doctor.statuses(self._probes.wanted, self._gate.step, seconds)

    def catalogue(self) -> list[QuantityInfo]:
        """Every quantity that can be attached."""
        return self._doctor.catalogue(self._probes.wanted)

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every boundary; returns its removal."""
        return self._gate.each_boundary(callback)

    def settle(self) -> None:
        """Close the open step if its update has happened; for the end of a notebook cell.

        While another thread trains its step is left alone.
        """
        if not self._gate.is_elsewhere:
            self._observer.settle()
            self._rows.drain()
            self._meter.rest()

    def status(self) -> Status:
        """The run now: step, speed, cost, every probe, what the writer says.

        For each probe it tells when it last fired, why it did not, and what it costs.
        In a notebook ``run.status()`` sums it up.
        """
        return self._condition.status(self.name, tuple(self.probes()), closed=self.closed)

    # ---------------------------------------------------------------- training, showing, ending

    def budget(self, percent: float | None) -> None:
        """Stay below ``percent`` of step time: when watching costs more, schedules are stretched.

        Then one of 2, 4, 8, ... due steps is measured; every change is an event of the record and
        stands in ``status().budget``. None measures every due step again.

        Raises
        ------
        ValueError
            For anything but a positive number or None.

        Examples
        --------
        >>> run.budget(2.0)  # doctest: +SKIP
        """
        if percent is not None and not 0 < percent < math.inf:
            raise ValueError(f"budget({percent!r}): a positive number of per cent, or None")
        self._stretch.set_budget(math.inf if percent is None else float(percent))

    @property
    def on_compiled(self) -> OnCompiled:
        """What happens to probes of a compiled model's calls, ``"skip"`` or ``"eager"``.

        A compiled model runs no hooks, so that they are skipped, and the status says so. With
        ``"eager"`` only the steps in which something is due run uncompiled, from the next step
        on; nothing is compiled again. Eager and compiled kernels may differ in the last bits.
        """
        return "eager" if self._observer.eager.wanted else "skip"

    @on_compiled.setter
    def on_compiled(self, steps: OnCompiled) -> None:
        self._check_open()
        check_on_compiled(steps)
        self._probes.run_eagerly(steps == "eager")
        self._change_between_steps()

    def train_in_background(self, function: Callable[[], Any]) -> Background:
        """Run the training function in a thread, so that the notebook stays free.

        torch's modes of this thread (gradients, autocast, default device, CUDA device) are
        carried over. An exception is shown in the panel and raised by ``wait()``; Stop ends it.

        Raises
        ------
        RuntimeError
            While an earlier one still runs.
        """
        self._check_open()
        if self._condition.trains_in_background:
            raise RuntimeError("training already runs in the background; press Stop or wait()")
        self._condition.background = Background(
            function,
            on_end=self._observer.settle,
            stop=partial(self._gate.put, Control("stop")),  # not of self: a run may be dropped
        )
        return self._condition.background

    def explore(self) -> Explorer:
        """Show the Explorer under this cell; it stays alive while the cells below run."""
        from notebook_probe.explorer import Explorer

        if self._explorer is None or self._explorer.closed:
            self._explorer = Explorer(self, self)
        self._explorer.show()
        return self._explorer

    def flush(self) -> None:
        """Write what is still in memory now."""
        self._rows.drain()
        self._writer.flush()

    @property
    def closed(self) -> bool:
        return not self._ended.alive

    def close(self) -> None:
        """Record the last step, take every hook off, and finish the record. Twice is fine."""
        if not self.closed:
            self.probes()  # why some are silent is known as long as there is a model
        self._ended()
        self._end_with_model.wait()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self._condition.state(self.closed)}, {self.location}>"

    # ---------------------------------------------------------------- inside

    def replaces_on(self, model: nn.Module) -> bool:
        """Tell whether watching ``model`` again, to a fresh folder too, is this run over again."""
        return self._is_fresh and self._probes.watches(model)

    def _check_open(self) -> None:
        if self.closed:
            why = "" if self._model_gone() else ", because its model no longer exists"
            raise ClosedRunError(
                f"run {self.name!r} is closed{why}; its record at {self.location} can still be "
                f"read, and nbp.watch(model) begins another"
            )

    def _change_between_steps(self) -> None:
        """Let what is wanted act now when no step is open; else the gate does, at the next one."""
        if not self._gate.is_elsewhere:
            observer = self._observer
            observer.between_steps(lambda: self._probes.change(observer.clock.step))


def _spent(meter: Meter, stretch: Budget, step: int, seconds: float, cost: float) -> None:
    meter.add(seconds, cost)
    stretch.add(step, seconds, cost)


def _tell_budget(writer: RecordWriter, step: int, text: str) -> None:
    writer.event(step, "budget", text)


def _with_status(
    probes: ProbeSet, doctor: Doctor, gate: Gate
) -> tuple[list[Probe], list[ProbeStatus], int]:
    wanted = probes.wanted
    return wanted, doctor.statuses(wanted, gate.step, 0.0), gate.step
