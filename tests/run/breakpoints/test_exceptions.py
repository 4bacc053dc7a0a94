"""An exception of the loop: shown with its traceback, held if asked for, and raised as ever."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from torch import nn

from notebook_probe.run.attach.requests import Control
from tests.models import sgd, train_step
from tests.run.breakpoints.trainings import batch, pauses
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S, held_at


@pytest.mark.parametrize("let_go", ["resume", "step", "stop"])
def test_an_exception_of_the_loop_is_shown_held_and_raised_as_ever(
    let_go: Any, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    run.pause_when(error=True)
    optimizer = sgd(model)

    def loop() -> None:
        for step in range(4):
            if step == 2:
                raise FloatingPointError("three is too many")
            train_step(model, optimizer, batch(step))

    background = run.train_in_background(loop)
    held_at(run)
    assert "FloatingPointError: three is too many" in run.status().pause_reason
    assert background.running
    run.controls.put(Control(let_go))
    with pytest.raises(FloatingPointError, match="three is too many"):
        background.wait(PATIENCE_S)
    head = run.controls.status_head()
    assert head.state == "failed"
    assert "raise FloatingPointError" in head.traceback
    (told,) = pauses(run)
    assert told["error"] == "FloatingPointError"
    for step in range(2):
        train_step(model, optimizer, batch(step))
    assert run.status().state != "paused", "training may go on"


def test_without_it_an_exception_ends_the_loop_at_once(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    background = run.train_in_background(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        background.wait(PATIENCE_S)
    assert "ZeroDivisionError" in run.controls.status_head().traceback


def test_an_exception_in_the_with_block_holds_it_before_the_run_is_closed(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.pause_when(error=True)
    seen: list[str] = []

    def loop() -> None:
        with suppress(ZeroDivisionError), run:
            1 / 0  # noqa: B018

    background = threading.Thread(target=loop)
    background.start()
    held_at(run)
    seen.append(run.status().pause_reason)
    run.resume()
    background.join(PATIENCE_S)
    assert "ZeroDivisionError" in seen[0]
    assert run.closed
