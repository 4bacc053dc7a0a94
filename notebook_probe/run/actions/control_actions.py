"""Control of a training: pause, breakpoints, resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.errors import BreakpointError, QuantityError, UnknownNameError, near, shown_as
from notebook_probe.quantities import own_name, quantities
from notebook_probe.record.format.schema import EVALUATION, module_label
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.write.checked_series import check_module
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.attach.requests import Control, Ticket
from notebook_probe.run.background import Background
from notebook_probe.run.breakpoints.breakpoint import Breakpoint
from notebook_probe.run.breakpoints.conditions import (
    AtStep,
    Before,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
    PauseCondition,
    as_comparison,
    would_pause,
)
from notebook_probe.run.flight.recorder import FlightRecorder

__all__ = ["ControlActions"]

LATE = {"after", "closing", "replay"}
"""Moments of a step that are too late for a breakpoint before an update."""


@shown_as("run")
class ControlActions(LiveActions):
    """Pause, step and stop, breakpoints, and training in the background."""

    def pause(self) -> Ticket:
        """Pause training before the next step, from any thread; `resume` continues it."""
        return self._live.put(Control("pause"))

    def resume(self) -> Ticket:
        """Continue a training paused by `pause` or a breakpoint; from any thread."""
        return self._live.put(Control("resume"))

    def stop(self) -> Ticket:
        """Stop training before the next step, from any thread, as Stop in the panel does.

        `TrainingStopped` is raised at the start of the next step: it ends a `Loop` and a training
        in the background; catch it in your own loop. All records are kept, and the run stays open.

        Examples
        --------
        >>> run.stop()  # doctest: +SKIP
        """
        return self._live.put(Control("stop"))

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
        """Pause training when a condition is met, until you press Continue.

        Training pauses between two steps, before the next batch is taken if the loop calls
        `boundary`. The panel says why, an event of kind ``"pause"`` is recorded, and ``resume()``,
        Continue or Step continues it. Without a panel one line is printed. If no user could
        continue it, as in a job without a terminal, training does not pause, and a line and the
        event say so. In a job of several processes the first one pauses, and the others wait.

        Rows are checked as soon as they are known: between a step and the next, on an accelerator
        one step later, which the message states. A condition on a series or on NaN pauses once, and
        again only after a row that does not meet it.

        Parameters
        ----------
        module, quantity, when : str
            A series and its comparison: ``"> 10"``, ``"<= 0"``, ``"crosses 0.5"``. The module is
            ``""`` for logged scalars. The series is checked at the steps at which it is measured,
            and may be attached later.
        for_rows : int
            Consecutive measured rows that have to meet the condition.
        step : int
            Pause before this step is trained.
        alert : str or sequence of str
            Pause when one of these rules fires; ``"severe"`` selects every severe rule. The rules
            are applied at each step while the breakpoint is armed.
        nan : bool
            Pause when a logged value, an output or a gradient is NaN or infinite, if an attached
            quantity shows it: norms, RMS, largest values, ``nonfinite_fraction``.
        error : bool
            If the loop raises, keep its state for inspection, then re-raise: in a `Loop`, in the
            background, or in ``with run:``.
        before : "step" or "update"
            ``"update"`` pauses for a series or NaN before the optimizer applies the gradient, with
            the values known at that time. On an accelerator each step then waits for the device.

        Returns
        -------
        Breakpoint
            ``remove()`` removes the breakpoint, ``armed`` switches it off and on, ``number`` is its
            step or threshold. An equal condition returns the existing breakpoint.

        Raises
        ------
        BreakpointError
            No condition, or more than one; an invalid comparison or number.
        UnknownNameError
            An unknown module, quantity of a module, or rule.
        ClosedRunError

        Examples
        --------
        >>> run.pause_when("conv3", "grad_norm", "> 10")  # doctest: +SKIP
        >>> run.pause_when("", "loss", "> 4", for_rows=3)  # doctest: +SKIP
        >>> run.pause_when(alert="severe")  # doctest: +SKIP
        >>> run.pause_when(nan=True, before="update")  # doctest: +SKIP
        """
        live = self._live
        given: list[PauseCondition] = []
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
        # A condition of a step or an error has one possible place, so another `before` is a
        # mistake.
        if before != given[0].before:
            raise BreakpointError(
                f"before={before!r} of {given[0].text}; a series or nan=True can pause before the "
                "'update', all else before the 'step'"
            )
        return live.breakpoints.add(given[0])

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """Breakpoints that `pause_when` or the panel has set, in order.

        Examples
        --------
        >>> run.breakpoints  # doctest: +SKIP
        [<Breakpoint conv3 · grad_norm > 10: armed, paused at step 812>]
        """
        return self._parts.breakpoints.handles()

    @property
    def flight(self) -> FlightRecorder | None:
        """Flight recorder, whose ``write()`` stores its rows in the record; None without one.

        Examples
        --------
        >>> run = nbp.watch(model, probes=None, flight=200)  # doctest: +SKIP
        >>> run.flight  # doctest: +SKIP
        <flight recorder: 200 of 200 steps of 96 series in memory, 117 kB>
        """
        flight = self._parts.flight
        return flight if flight.n_steps else None

    def would_pause(
        self, module: str, quantity: str, when: str, *, for_rows: int = 1
    ) -> npt.NDArray[np.int64]:
        """Return the recorded steps at which `pause_when` with this series would have paused.

        Raises
        ------
        BreakpointError, UnknownNameError, QuantityError
            Same as in `pause_when`, and if the series is not recorded.

        Examples
        --------
        >>> run.would_pause("head", "update_ratio", "> 0.02")  # doctest: +SKIP
        array([  3,   6, 118, 640])
        """
        # "step", as the record does not say which values were known before an update.
        condition = self._of_series(module, quantity, when, for_rows, "step")
        series = self._parts.source.series(condition.module, condition.quantity)
        rows = zip(series.step.values.tolist(), series.values.tolist(), strict=True)
        return np.array(would_pause(condition, rows), np.int64)

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
        self._check_quantity(label, name)
        if name in quantities and quantities[name].axis is not None:
            raise QuantityError(f"{name} is a vector; a quantity that is a number is expected")
        if before == "update" and name in quantities and LATE & {*quantities[name].moments}:
            raise BreakpointError(
                f"{name} is known after the update: before='step' can pause for it"
            )
        return OnSeries(label, name, as_comparison(when), for_rows, before)

    def _check_quantity(self, label: str, name: str) -> None:
        """Raise UnknownNameError for what no module can have; of the model any name may be logged.

        A breakpoint on a misspelled name would never pause.
        """
        recorded = {variable.name for variable in self._parts.source.snapshot().variables}
        is_known = name.removeprefix(EVALUATION) in quantities or name in recorded
        if label != ROOT and not is_known:
            known = sorted({*quantities, *recorded})
            raise UnknownNameError(f"no quantity {name!r} at {label!r}; {near(name, known)}")

    def train_in_background(self, function: Callable[[], Any]) -> Background:
        """Run the training function in a thread, so that the notebook stays free.

        torch's modes of this thread (gradients, autocast, default device, CUDA device) are set
        there. An exception is shown in the panel and raised by ``wait()``; Stop ends the training.

        Raises
        ------
        RuntimeError
            An earlier training in the background still runs.
        """
        return self._live.train_in_background(function)
