"""Checks at the gate: whether training pauses here, what is printed, and how it can continue."""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.reports import report
from notebook_probe.run.breakpoints.breakpoints import Breakpoints
from notebook_probe.run.breakpoints.conditions import Hit, OnAlert, OnNan, OnSeries, pause_text

__all__ = ["BreakpointCheck", "how_to_resume"]


class StepBatches(Protocol):
    """Protocol of what keeps the batch of a step after which training pauses."""

    def await_pause(self) -> None:
        """Note that training may pause after the next step."""

    def paused(self, step: int, why: str) -> None:
        """Keep the batch of a step, if it still exists."""


class BreakpointCheck:
    """Checks of the gate, on the training thread.

    Rows are delayed before they are made, and alerts until a flush: if an armed breakpoint needs
    them they are made now. Values still on their way from an accelerator arrive with the next step,
    and a pause caused by them says so.

    Parameters
    ----------
    breakpoints : Breakpoints
    steps : ClosedSteps
    look_at_alerts : callable
        Applies the rules to the rows that have come.
    is_followed : callable
        Returns whether a panel shows the run.
    resumed_by : callable
        Returns how another process can continue the training, as text; empty if none can.
    batches : StepBatches
        Keeps the batch of a step after which training pauses.
    """

    def __init__(
        self,
        breakpoints: Breakpoints,
        steps: ClosedSteps,
        look_at_alerts: Callable[[], None],
        is_followed: Callable[[], bool],
        resumed_by: Callable[[], str],
        batches: StepBatches,
    ) -> None:
        self._breakpoints, self._steps = breakpoints, steps
        self._look_at_alerts, self._is_followed = look_at_alerts, is_followed
        self._resumed_by, self._batches = resumed_by, batches

    @property
    def is_idle(self) -> bool:
        """True if nothing can pause training now."""
        return self._breakpoints.is_idle

    def before_step(self, step: int) -> bool:
        """Return whether training pauses before ``step``."""
        breakpoints = self._breakpoints
        if breakpoints.waits_for(OnSeries, OnNan, OnAlert):
            self._steps.hurry()
            self._batches.await_pause()
        if breakpoints.waits_for(OnAlert):
            self._look_at_alerts()
        return self._pauses(breakpoints.passing(step), step)

    def awaits_update(self) -> bool:
        """Return whether a breakpoint that pauses before an update is armed."""
        return self._breakpoints.waits_before("update")

    def before_update(self, frame: StepFrame) -> bool:
        """Return whether training pauses before the update of an open step."""
        self._breakpoints.see(self._steps.measured(frame, is_final=False), "update")
        return self._pauses(self._breakpoints.taken(), frame.step)

    def on_error(self, step: int, error: BaseException) -> bool:
        """Return whether training pauses because the loop raised."""
        return self._pauses(self._breakpoints.raised(step, error), step)

    def resumed(self) -> None:
        """Note that training continues."""
        self._breakpoints.resumed()

    def _pauses(self, hits: Sequence[Hit], step: int) -> bool:
        if not hits:
            return False
        text = pause_text(hits, step)
        # Nothing can resume a job without a panel, a terminal or another thread: it must not stop.
        if not self._is_followed():
            how = self._resumed_by() or how_to_resume()
            report(f"{text}; {how}" if how else f"not {text}: nothing could resume it")
            if not how:
                self._breakpoints.pass_by(hits, text)
                return False
        self._breakpoints.paused(hits, text)
        for met in {hit.step for hit in hits}:
            self._batches.paused(met, text)
        return True


def how_to_resume() -> str:
    """Return how a training paused on this thread can continue without a panel, as text.

    Empty if there is no way: in a job on the main thread, without a terminal, a notebook or
    another thread of the user's own.
    """
    resume = "run.resume() continues"
    # A paused background thread leaves the main thread free to resume it.
    if threading.current_thread() is not threading.main_thread():
        return resume
    # A thread that is not a daemon belongs to the program and may be the one that resumes.
    others = [one for one in threading.enumerate() if not one.daemon]
    if len(others) > 1:
        return f"{resume} from another thread, Ctrl-C ends the loop"
    # IPython sets this name; a kernel has no terminal, but an interrupt button.
    if getattr(builtins, "__IPYTHON__", False):
        return "run.explore() before the loop shows a Continue button; interrupting ends it"
    # Without a terminal Ctrl-C may never come, and the job would wait until its time is over.
    if sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty():
        return "Ctrl-C ends the loop; a panel, or training in the background, can continue"
    return ""
