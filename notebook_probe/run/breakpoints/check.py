"""Asked at the gate: whether training is to be held here, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.breakpoints.conditions import OnAlert, OnNan, OnSeries
from notebook_probe.run.breakpoints.hit import Hit, held_text
from notebook_probe.run.breakpoints.somebody import how_to_go_on

__all__ = ["BreakpointCheck"]


class BreakpointCheck:
    """What the gate asks, on the thread that trains.

    Rows wait for a moment before they are made, and alerts for a flush: where something armed
    needs them they are brought now. What is still on its way from an accelerator comes with the
    next step, and what is held by then says so.

    Parameters
    ----------
    breakpoints : Breakpoints
    steps : ClosedSteps
    look_at_alerts : callable
        Applies the rules to the rows that have come.
    is_followed : callable
        Whether a panel shows the run.
    """

    def __init__(
        self,
        breakpoints: Breakpoints,
        steps: ClosedSteps,
        look_at_alerts: Callable[[], None],
        is_followed: Callable[[], bool],
    ) -> None:
        self._breakpoints, self._steps = breakpoints, steps
        self._look_at_alerts, self._is_followed = look_at_alerts, is_followed

    @property
    def is_idle(self) -> bool:
        """Nothing can hold the training now."""
        return self._breakpoints.is_idle

    def before_step(self, step: int) -> bool:
        """Tell whether the training is held before ``step``."""
        breakpoints = self._breakpoints
        if breakpoints.waits_for(OnSeries, OnNan, OnAlert):
            self._steps.hurry()
        if breakpoints.waits_for(OnAlert):
            self._look_at_alerts()
        return self._hold(breakpoints.passing(step), step)

    def awaits_update(self) -> bool:
        """Tell whether something is armed that holds before an update."""
        return self._breakpoints.waits_before("update")

    def before_update(self, frame: StepFrame) -> bool:
        """Tell whether it is held before the update of an open step."""
        self._breakpoints.see(self._steps.measured(frame, is_final=False), "update")
        return self._hold(self._breakpoints.taken(), frame.step)

    def on_error(self, step: int, error: BaseException) -> bool:
        """Tell whether it is held because the loop raised."""
        return self._hold(self._breakpoints.raised(step, error), step)

    def let_go(self) -> None:
        """Training goes on."""
        self._breakpoints.let_go()

    def _hold(self, hits: Sequence[Hit], step: int) -> bool:
        if not hits:
            return False
        text = held_text(hits, step)
        if not self._is_followed():
            how = how_to_go_on()
            print(f"{text}; {how}" if how else f"not {text}: nobody could let it go on")
            if not how:
                self._breakpoints.pass_by(hits, text)
                return False
        self._breakpoints.hold(hits, text)
        return True
