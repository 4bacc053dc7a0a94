"""How one steers a training: pausing it, having it paused by a condition, letting it go on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.errors import BreakpointError, QuantityError
from notebook_probe.quantities import own_name, quantities
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.write.checked_series import check_module
from notebook_probe.run.attach.requests import Control, Request, Ticket
from notebook_probe.run.background import Background
from notebook_probe.run.breakpoints.breakpoint import Breakpoint
from notebook_probe.run.breakpoints.comparison import as_comparison
from notebook_probe.run.breakpoints.conditions import (
    AtStep,
    Before,
    Condition,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
)
from notebook_probe.run.breakpoints.requests import BreakpointInfo
from notebook_probe.run.breakpoints.series_track import would_pause
from notebook_probe.run.flight.recorder import FlightRecorder
from notebook_probe.run.parts import RunParts

__all__ = ["ControlActions"]

LATE = {"after", "closing", "replay"}
"""When what is read is of no use before an update."""


class ControlActions(ABC):
    """Pause, step and stop, breakpoints, and training in the background."""

    _parts: RunParts

    @property
    @abstractmethod
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""

    def put(self, request: Request) -> Ticket:
        """Queue a request for the next step boundary, from any thread."""
        return self._parts.put(request)

    def pause(self) -> Ticket:
        """Hold the training before the next step, from any thread; `resume` lets it go on."""
        return self._live.put(Control("pause"))

    def resume(self) -> Ticket:
        """Let a training go on that is held, by `pause` or a breakpoint; from any thread."""
        return self._live.put(Control("resume"))

    def pause_when(
        self,
        module: str | None = None,
        quantity: str | None = None,
        when: str | None = None,
        *,
        for_rows: int = 1,
        step: int | None = None,
        alert: str | Sequence[str] | None = None,
        nan: bool = False,
        error: bool = False,
        before: Before = "step",
    ) -> Breakpoint:
        """Hold the training when something happens, as Pause does, until it is let go on.

        It is held between two steps, before the next batch is taken where the loop calls
        `boundary`. The panel says why, an event of kind ``"pause"`` keeps it, and ``resume()``,
        Continue or Step lets it go on. Without a panel one line is printed. Where nobody could let
        it go on, in a job without terminal or another thread, it is not held, and a line and the
        event say so. In a job of several processes the first one holds, and the others wait.

        Rows are looked at as soon as they are known: between the step and the next, of an
        accelerator one step later, which the text then says. A series, and NaN, hold once until
        a row has been otherwise.

        Parameters
        ----------
        module, quantity, when : str
            A series and what it is compared with: ``"> 10"``, ``"<= 0"``, ``"crosses 0.5"``. The
            module is ``""`` for what the loop logs. It is checked at the steps at which it is
            measured, and need not be attached yet.
        for_rows : int
            So many measured rows in a row.
        step : int
            Before this step is trained.
        alert : str or sequence of str
            When one of these rules fires, or with ``"severe"`` any that is severe. The rules are
            applied at each step while it is armed.
        nan : bool
            When anything that is logged, an output or a gradient is NaN or infinite, as far as
            quantities are attached that tell: norms, RMS, largest values, ``nonfinite_fraction``.
        error : bool
            When the loop raises: a `Loop`, one in the background, or in ``with run:``. It raises
            as ever once it is let go on.
        before : "step" or "update"
            ``"update"`` holds a series or NaN before the optimizer applies the gradient, by what is
            known by then. On an accelerator each step then waits for the device.

        Returns
        -------
        Breakpoint
            ``remove()`` takes it away, ``armed`` switches it off and on, ``number`` is its step or
            threshold. The same condition once more gives the one that is there.

        Raises
        ------
        BreakpointError
            No condition, or more than one; a comparison or number that cannot be.
        UnknownNameError
            A module or rule that is not there.
        ClosedRunError

        Examples
        --------
        >>> run.pause_when("conv3", "grad_norm", "> 10")  # doctest: +SKIP
        >>> run.pause_when("", "loss", "> 4", for_rows=3)  # doctest: +SKIP
        >>> run.pause_when(alert="severe")  # doctest: +SKIP
        >>> run.pause_when(nan=True, before="update")  # doctest: +SKIP
        """
        live = self._live
        given: list[Condition] = []
        if (module, quantity, when) != (None, None, None):
            given.append(self._of_series(module, quantity, when, for_rows, before))
        if step is not None:
            given.append(AtStep(step))
        if alert is not None:
            rules = OnAlert((alert,) if isinstance(alert, str) else tuple(alert))
            rules.check(live.rules)
            given.append(rules)
        if nan:
            given.append(OnNan(before))
        if error:
            given.append(OnError())
        if len(given) != 1:
            raise BreakpointError(
                f"pause_when with {len(given)} conditions; one is expected: module, quantity and "
                "when, or step=, alert=, nan=True or error=True"
            )
        if before != given[0].before:
            raise BreakpointError(
                f"before={before!r} of {given[0].text}; a series or nan=True can hold before the "
                "'update', all else before the 'step'"
            )
        return live.breakpoints.add(given[0])

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """All that `pause_when` or the panel has set, in their order.

        Examples
        --------
        >>> run.breakpoints  # doctest: +SKIP
        [<Breakpoint conv3 · grad_norm > 10: armed, held at step 812>]
        """
        return self._parts.breakpoints.handles()

    @property
    def flight(self) -> FlightRecorder | None:
        """The flight recorder, whose ``write()`` writes what it keeps; None without one.

        Examples
        --------
        >>> run = nbp.watch(model, probes=None, flight=200)  # doctest: +SKIP
        >>> run.flight  # doctest: +SKIP
        <flight recorder: 200 of 200 steps of 96 series in memory, 117 kB>
        """
        flight = self._parts.flight
        return flight if flight.n_steps else None

    def breakpoint_infos(self) -> list[BreakpointInfo]:
        """The same as plain values, as they are now."""
        return self._parts.breakpoints.infos()

    def would_pause(
        self, module: str, quantity: str, when: str, *, for_rows: int = 1
    ) -> npt.NDArray[np.int64]:
        """The steps at which `pause_when` with this series would have paused, by what is recorded.

        Raises
        ------
        BreakpointError, UnknownNameError, QuantityError
            As `pause_when`, and for a series that is not recorded.

        Examples
        --------
        >>> run.would_pause("head", "update_ratio", "> 0.02")  # doctest: +SKIP
        array([  3,   6, 118, 640])
        """
        condition = self._of_series(module, quantity, when, for_rows, "step")
        series = self._parts.source.series(condition.module, condition.quantity)
        rows = zip(series.step.values.tolist(), series.values.tolist(), strict=True)
        return np.array(would_pause(condition, rows), np.int64)

    def severe_rules(self) -> list[str]:
        """The rules that ``alert="severe"`` stands for."""
        return [name for name, rule in self._parts.rules.items() if rule.severity == "severe"]

    def rule_names(self) -> list[str]:
        """The alert rules that are followed."""
        return [*self._parts.rules]

    def _of_series(
        self,
        module: str | None,
        quantity: str | None,
        when: str | None,
        for_rows: int,
        before: Before,
    ) -> OnSeries:
        if module is None or quantity is None or when is None:
            raise BreakpointError(
                f"module={module!r}, quantity={quantity!r}, when={when!r}: a series is all three, "
                "such as 'conv3', 'grad_norm', '> 10'"
            )
        label, name = module_label(module), own_name(quantity)
        check_module(self._parts.source, label)
        if name in quantities and quantities[name].axis is not None:
            raise QuantityError(f"{name} is a vector; a quantity that is a number is expected")
        if before == "update" and name in quantities and LATE & {*quantities[name].moments}:
            raise BreakpointError(f"{name} is known after the update: before='step' can hold it")
        return OnSeries(label, name, as_comparison(when), for_rows, before)

    # ---------------------------------------------------------------- who trains, and who watches

    def each_boundary(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread at every boundary; returns its removal."""
        return self._parts.gate.each_boundary(callback)

    def each_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call ``callback(step)`` on the training thread before each step; returns its removal.

        The step before is recorded by then, and none is open.
        """
        return self._live.gate.each_step(callback)

    def each_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` before the run is closed by its user; returns its removal."""
        return self._live.gate.each_end(callback)

    def each_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` on the training thread when requests were answered, or it is held."""
        return self._parts.gate.each_news(callback)

    def train_in_background(self, function: Callable[[], Any]) -> Background:
        """Run the training function in a thread, so that the notebook stays free.

        torch's modes of this thread (gradients, autocast, default device, CUDA device) are
        carried over. An exception is shown in the panel and raised by ``wait()``; Stop ends it.

        Raises
        ------
        RuntimeError
            While an earlier one still runs.
        """
        live = self._live
        if live.state.trains_in_background:
            raise RuntimeError("training already runs in the background; press Stop or wait()")
        live.state.background = Background(
            function,
            on_end=live.end_loop,
            stop=partial(live.put, Control("stop")),  # not of self: a run may be dropped
            on_error=live.loop_raised,
            reached=live.gate.reached,
        )
        return live.state.background
