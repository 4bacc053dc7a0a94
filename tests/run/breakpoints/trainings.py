"""Trainings that breakpoints hold, and what is told of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

import notebook_probe as nbp
from notebook_probe.run.background import Background
from tests.models import floats, sgd, train_step
from tests.run.loops import wait_until

batch = floats(5, 4)


def logging(run: nbp.Run, model: nn.Module, values: Sequence[float]) -> Background:
    """Train a step for each value, which is logged as the loss of its step."""
    optimizer = sgd(model)

    def loop() -> None:
        for step, value in enumerate(values):
            run.boundary()
            train_step(model, optimizer, batch(step))
            run.log(loss=value)
        run.boundary()

    return run.train_in_background(loop)


def pauses(run: nbp.Run) -> list[dict[str, Any]]:
    return [json.loads(event.detail) for event in run.events if event.kind == "pause"]


def go_on(run: nbp.Run, until: Callable[[], bool]) -> None:
    run.resume()
    wait_until(until)
