"""Gradient scalers, found where they call the optimizer whose step has just ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.catalogue.optimizer_state import Scaler
from notebook_probe.quantities.define.numbers import read_scalar
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["AT_UPDATE", "read_step", "scaler_calling"]

MOST_FRAMES = 16
"""Maximum number of frames between a scaler and a reading: the deeper ones are of the loop."""

_STEP = GradScaler.step.__code__


def scaler_calling() -> GradScaler | None:
    """Return the one whose ``step`` is on this stack, not far from the optimizer's."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(MOST_FRAMES):
        if frame is None or frame.f_code is _STEP:
            break
        frame = frame.f_back
    else:
        return None
    found = frame.f_locals["self"] if frame is not None else None
    return found if isinstance(found, GradScaler) and found.is_enabled() else None


def _number(frame: StepFrame, value: Tensor) -> Number:
    """Return the present number: the scaler will overwrite it."""
    number = read_scalar("a gradient scaler:", value)
    frame.on_device |= isinstance(number, Tensor)
    return number


def _loss_scale(frame: StepFrame, optimizer: Optimizer) -> Number:
    scaler = scaler_calling()
    return 1.0 if scaler is None or scaler._scale is None else _number(frame, scaler._scale)


def _scaler(frame: StepFrame, optimizer: Optimizer) -> Scaler | None:
    """Return the scaler with the overflows of optimizers that stepped before in this step."""
    scaler, found = scaler_calling(), getattr(optimizer, "found_inf", None)
    before: Scaler | None = frame.of_step.get("scaler")
    if scaler is None or scaler._scale is None or scaler._growth_tracker is None:
        return before
    n_overflows = 0.0 if found is None else _number(frame, found)
    return Scaler(
        scale=_number(frame, scaler._scale),
        n_clean=_number(frame, scaler._growth_tracker),
        n_overflows=n_overflows + (before.n_overflows if before is not None else 0.0),
        growth=scaler.get_growth_factor(),
        backoff=scaler.get_backoff_factor(),
        interval=scaler.get_growth_interval(),
    )


AT_UPDATE: dict[str, Callable[[StepFrame, Optimizer], Any]] = {
    "loss_scale": _loss_scale,
    "scaler": _scaler,
}
"""Readers of what is of the step as a whole when an optimizer has stepped."""


def read_step(frame: StepFrame, optimizer: Optimizer, wanted: dict[str, list[Probe]]) -> None:
    """Read the values of the scaler that probes need."""
    for name, probes in wanted.items():
        try:
            frame.of_step[name] = AT_UPDATE[name](frame, optimizer)
        except Exception as error:  # the optimizer's step must survive whatever torch keeps there
            frame.blame_all(probes, error)
