"""A run: one watched model, its probes, its record and its controls."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsFloat

import xarray as xr
from torch import nn

from notebook_probe.errors import ClosedRunError
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.selectors import Where
from notebook_probe.record.joined import join, series, stack, tree
from notebook_probe.record.source import Event, ModuleRow, StreamView
from notebook_probe.record.writer import RecordWriter
from notebook_probe.run.attach import Asked, QuantityLike, read_asked
from notebook_probe.run.background import Background
from notebook_probe.run.gate import Gate
from notebook_probe.run.handle import Handle
from notebook_probe.run.meter import Meter
from notebook_probe.run.open_step import with_open_step
from notebook_probe.run.probeset import ProbeSet
from notebook_probe.run.requests import Control, Request, Ticket
from notebook_probe.run.rows import RowKeeper
from notebook_probe.run.scalars import read_scalar
from notebook_probe.run.status import ProbeStatus, QuantityInfo, State, Status
from notebook_probe.schedules import ScheduleLike

if TYPE_CHECKING:
    from notebook_probe.explorer import Explorer

__all__ = ["Run"]


class Run:
    """A watched model; made by `notebook_probe.watch`.

    It is a Source: everything recorded so far can be read at any time. It holds the model weakly,
    and dropping it takes every hook off. ``with run:`` closes it at the end.

    Attributes
    ----------
    name : str
    """

    def __init__(
        self, model: nn.Module, writer: RecordWriter, name: str, asked: Asked, fresh: bool
    ) -> None:
        self.name = name
        self._writer = writer
        self._meter = Meter()
        self._rows = RowKeeper(writer, self._meter)
        first = writer.last_step + 1
        self._gate = Gate(first)
        self._observer = Observer(model, first, self._rows.publish, self._gate)
        self._probes = ProbeSet(model, self._observer, self._rows.declare, writer.event)
        self._gate.apply, self._gate.change = self._probes.apply, self._probes.change
        self._probes.begin(asked.probes, first)
        self._background: Background | None = None
        self._explorer: Explorer | None = None
        self._is_fresh = fresh
        self._ended = weakref.finalize(
            self, _end, self._gate, self._observer, self._rows, writer, fresh
        )
        # A model that is dropped ends its run; from the garbage collector, so on another thread.
        self._model_gone = weakref.ref(model, _ending_on_a_thread(self._ended))

    # ---------------------------------------------------------------- probes

    def attach(
        self,
        where: Where | Mapping[Any, Any],
        quantity: QuantityLike | Sequence[QuantityLike] | None = None,
        schedule: ScheduleLike = None,
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
        asked = read_asked(self._probes.model, where, quantity, schedule)
        self._probes.attach(asked.probes)
        self._change_between_steps()
        return Handle(self, asked)

    def detach(self, handle: Handle | Where, quantity: str = "") -> None:
        """Take probes off: those of a handle, or ``quantity`` (all when empty) at a selection."""
        self._check_open()
        probes = (
            handle.probes if isinstance(handle, Handle) else self._probes.find(handle, quantity)
        )
        self._probes.detach(probes)
        self._change_between_steps()

    def log(self, **scalars: SupportsFloat) -> None:
        """Record scalars of your own at the open step, e.g. ``run.log(loss=loss)``.

        A tensor stays on its device until the next flush. The same name again in one step
        replaces the value.

        Raises
        ------
        QuantityError
            For anything but one real number, and for a name that cannot be a variable's.
        """
        self._check_open()
        checked = {name: read_scalar(name, value) for name, value in scalars.items()}
        self._rows.declare_scalars(checked)
        frame = self._observer.frame or self._rows.between_steps(self._observer.clock.step)
        frame.scalars.update(checked)

    def step(self) -> None:
        """Close the open step by hand, after backward, in loops without an optimizer.

        From the first call on, steps close only so.
        """
        self._check_open()
        self._observer.step()

    # ---------------------------------------------------------------- reading (a Source)

    @property
    def location(self) -> str:
        return self._writer.location

    @property
    def revision(self) -> int:
        return self._writer.source.revision

    @property
    def finished(self) -> bool:
        return self._writer.source.finished

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        return self._writer.source.modules

    @property
    def streams(self) -> Mapping[str, StreamView]:
        return self._writer.source.streams

    @property
    def events(self) -> tuple[Event, ...]:
        return self._writer.source.events

    @property
    def data(self) -> xr.Dataset:
        """Everything recorded, dims (module, step), a variable per quantity; NaN = not measured.

        The streams of all schedules are joined on the union of their steps. The open step is
        part of it once its optimizer has stepped.
        """
        return join(self._now(), self._definition_order())

    @property
    def cube(self) -> xr.DataArray:
        """``data`` stacked: dims (module, quantity, step)."""
        return stack(self.data)

    @property
    def tree(self) -> xr.DataTree:
        """Every schedule's own step axis, nothing joined."""
        return tree(self._now())

    def series(self, module: str, quantity: str) -> xr.DataArray:
        """One quantity of one module over the steps at which it was measured, dims (step,).

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        """
        return series(self._now(), self._definition_order(), module, quantity)

    def _now(self) -> list[StreamView]:
        self._rows.drain()
        frame = self._observer.frame
        if frame is None or not self._observer.clock.has_stepped:
            frame = self._rows.unfinished(frame)
        if frame is None:
            return list(self.streams.values())
        return with_open_step(self.streams, self._rows.preview(frame))

    def _definition_order(self) -> list[str]:
        return [row.name for row in self.modules]

    # ---------------------------------------------------------------- controls

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary, from any thread."""
        return self._gate.put(request)

    def probes(self) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        return self._probes.statuses(self._gate.step)

    def catalogue(self) -> list[QuantityInfo]:
        """Every quantity that can be attached."""
        return self._probes.catalogue()

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
        """The run now: step, speed, cost, probes with errors, what the writer says."""
        writer, probes = self._writer, self._probes.statuses(self._gate.step)
        flushed = writer.flushed_at
        return Status(
            name=self.name,
            location=self.location,
            state=self._state(),
            step=self._observer.clock.step + self._observer.clock.has_stepped,
            steps_per_second=self._meter.steps_per_second,
            cost_percent=self._meter.cost_percent,
            n_probes=len(probes),
            dropped_rows=writer.dropped_rows,
            nbytes=writer.nbytes,
            flushed_age_s=math.nan if flushed is None else time.monotonic() - flushed,
            background=self._background is not None and self._background.running,
            scalars={name: float(value) for name, value in self._rows.scalars.items()},
            errors=tuple(probe for probe in probes if probe.n_errors),
            problem=self._problem(),
        )

    def _state(self) -> State:
        background = self._background
        if self.closed:
            return "finished"
        if self._failed() is not None:
            return "failed"
        if self._gate.is_held:
            return "paused"
        if self._meter.is_moving or (background is not None and background.running):
            return "training"
        return "idle" if self._observer.clock.step > 0 else "waiting"

    def _failed(self) -> Background | None:
        """The background training that ended in an error, until a later step is trained."""
        background = self._background
        if background is None or background.error is None:
            return None
        return None if self._meter.moved_since(background.ended_at) else background

    def _problem(self) -> str:
        failed = self._failed()
        told = failed.error_text if failed is not None else ""
        return told or self._writer.last_error or self._rows.problem or self._gate.problem

    # ---------------------------------------------------------------- training, showing, ending

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
        if self._background is not None and self._background.running:
            raise RuntimeError("training already runs in the background; press Stop or wait()")
        self._background = Background(
            function,
            on_end=self._observer.settle,
            stop=partial(self._gate.put, Control("stop")),  # not of self: a run may be dropped
        )
        return self._background

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
        self._ended()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self._state()}, {self.location}>"

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
        if self._observer.frame is None and not self._gate.is_elsewhere:
            self._probes.change(self._observer.clock.step)


def _end(
    gate: Gate, observer: Observer, rows: RowKeeper, writer: RecordWriter, fresh: bool
) -> None:
    gate.close()
    observer.close()
    unfinished = rows.unfinished(observer.frame)
    if unfinished is not None:
        rows.keep(unfinished)
    rows.drain()
    writer.close()
    if fresh:  # a folder of our own choosing that nothing was recorded in
        writer.discard_if_empty()


def _ending_on_a_thread(end: weakref.finalize[Any, Any]) -> Callable[[object], None]:
    def begin(_: object) -> None:
        if end.alive:  # not after close(), and not while the interpreter exits
            threading.Thread(target=end, name="notebook-probe-end").start()

    return begin
