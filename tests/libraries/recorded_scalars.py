"""What a run recorded of a number that a framework logged, and what the framework says it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control

__all__ = ["nearly", "scalars", "stop_at"]


def scalars(run: nbp.Run | nbp.OpenedRun, name: str) -> dict[int, float]:
    """Step -> value."""
    found = run.series("", name).dropna("step")
    return dict(zip(found.step.values.tolist(), found.values.tolist(), strict=True))


def nearly(reported: dict[int, float]) -> object:
    """As exact as a record in float32."""
    return pytest.approx({step: float(np.float32(value)) for step, value in reported.items()})


def stop_at(run: nbp.Run, step: int) -> None:
    """Have Stop pressed by another thread while this step is trained: it acts after it."""
    pressed: list[threading.Thread] = []

    def press() -> None:
        if run.controls.open_step >= step and not pressed:
            pressed.append(threading.Thread(target=run.controls.put, args=(Control("stop"),)))
            pressed[0].start()
            pressed[0].join()

    run.controls.each_boundary(press)
