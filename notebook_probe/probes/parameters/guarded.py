"""Reading one parameter at a time, so that whatever it is, the optimizer's step goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from notebook_probe.probes.reading.plan import Plan
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.reduce.features import Moment

__all__ = ["guarded"]


def guarded(
    read: Callable[..., None], moment: Moment, frame: StepFrame, plan: Plan, *given: Any
) -> None:
    """Call ``read(frame, plan, *given)``: an error and the time are those of the plan's probes."""
    begun = time.perf_counter()
    try:
        read(frame, plan, *given)
    except Exception as error:
        frame.blame_all(plan.of(moment), error)
    plan.spent(moment, time.perf_counter() - begun)
