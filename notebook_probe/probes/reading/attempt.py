"""Reading something of a step, so that whatever it is, training goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.reduce.features import Moment

__all__ = ["attempt", "attempt_in_hook"]


def attempt(
    frame: StepFrame, plan: Plan, moment: Moment, read: Callable[..., object], *given: Any
) -> None:
    """Call ``read(*given)``: an error and the time are those of the plan's probes of the moment."""
    begun = time.perf_counter()
    _try(frame, plan, moment, read, given)
    plan.spent(moment, time.perf_counter() - begun)


def attempt_in_hook(
    begun: float,
    frame: StepFrame,
    plan: Plan,
    moment: Moment,
    read: Callable[..., object],
    *given: Any,
) -> None:
    """As `attempt`, where torch has called a hook of ours, whose whole time the step has cost.

    Parameters
    ----------
    begun : float
        When the hook was called. What it did before the frame was there, such as waiting in a
        pause, is no part of the frame, and what another hook has counted meanwhile is not its own.
    """
    _try(frame, plan, moment, read, given)
    before, frame.heard = frame.heard, time.perf_counter()
    seconds = frame.heard - max(begun, before) + seconds_of_a_call(moment, begun - before)
    plan.spent(moment, seconds)
    frame.seconds += seconds


def _try(
    frame: StepFrame, plan: Plan, moment: Moment, read: Callable[..., object], given: Any
) -> None:
    try:
        read(*given)
    except Exception as error:  # whatever a tensor, a model or a user's quantity is
        frame.blame_all(plan.of(moment), error)
