"""Guarded readings of a step: whatever they raise, training continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.calling import seconds_of_a_call
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.plain_mode import measures_in, plain_mode
from notebook_probe.quantities.reduce.features import Moment

__all__ = ["attempt", "attempt_in_hook"]

DisableTorchFunction = torch._C.DisableTorchFunction
_n_modes, _is_autocast = torch._C._len_torch_dispatch_stack, torch._C._is_any_autocast_enabled


def attempt(
    frame: FramePart, plan: ReadingPlan, moment: Moment, read: Callable[..., object], *given: Any
) -> None:
    """Call ``read(*given)``: an error and the time are those of the plan's probes of the moment."""
    begun = time.perf_counter()
    try:
        read(*given)
    except Exception as error:  # whatever a tensor, a model or a user's quantity is
        frame.blame_all(plan.of(moment), error)
    plan.spent(moment, time.perf_counter() - begun)


def attempt_in_hook(
    begun: float,
    frame: FramePart,
    plan: ReadingPlan,
    moment: Moment,
    read: Callable[..., object],
    *given: Any,
) -> None:
    """Do as `attempt` in a hook, in `plain_mode`; its whole time counts as the step's cost.

    Parameters
    ----------
    begun : float
        Time at which the hook was called. Time before the frame existed, such as a pause, is not
        part of the frame, and time that another hook has counted meanwhile is not counted twice.
    """
    try:
        if _n_modes() > 0 or _is_autocast():
            plain_mode(read, *given)
        else:  # as plain_mode does, without a call of it
            with DisableTorchFunction():
                read(*given)
    except Exception as error:  # whatever a tensor, a model or a user's quantity is
        frame.blame_all(plan.of(moment), error)
    before, now = frame.heard, time.perf_counter()
    seconds = now - (begun if begun > before else before)
    seconds += seconds_of_a_call(moment, begun - before)
    plan.seconds[moment] = plan.seconds.get(moment, 0.0) + seconds
    frame.seconds += seconds
    frame.heard = now


measures_in(attempt_in_hook)
