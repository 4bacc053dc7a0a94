"""Reading something of a step, so that whatever it is, training goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.reduce.features import Moment

__all__ = ["attempt"]


def attempt(
    frame: StepFrame, plan: Plan, moment: Moment, read: Callable[..., object], *given: Any
) -> float:
    """Call ``read(*given)``: an error and the time are those of the plan's probes of the moment.

    Returns
    -------
    float
        The seconds it took, for whoever adds up what the step has cost.
    """
    begun = time.perf_counter()
    try:
        read(*given)
    except Exception as error:  # whatever a tensor, a model or a user's quantity is
        frame.blame_all(plan.of(moment), error)
    seconds = time.perf_counter() - begun
    plan.spent(moment, seconds)
    return seconds
