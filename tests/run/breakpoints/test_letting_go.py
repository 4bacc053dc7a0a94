"""How a held training goes on or ends, and how breakpoints are armed, edited and removed."""

from __future__ import annotations

import json
import math

import pytest
from torch import nn

from notebook_probe.errors import TrainingStopped
from notebook_probe.run.breakpoints import check
from notebook_probe.run.breakpoints.conditions import AtStep
from notebook_probe.run.breakpoints.requests import AddBreakpoint, EditBreakpoint, RemoveBreakpoint
from tests.models import sgd, train_step
from tests.run.breakpoints.trainings import batch, go_on, logging, pauses
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S, applied, held_at, training


def test_on_the_main_thread_without_anybody_it_goes_on_and_says_so(
    watch: Watch,
    model: nn.Module,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "how_to_resume", str)  # whatever else this process has done
    run = watch(model, probes=None)
    run.pause_when(step=1)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    assert "not paused at step 1: nothing could resume it" in capsys.readouterr().out
    (event,) = [event for event in run.events if event.kind == "pause"]
    assert event.text.startswith("not paused")


def test_without_a_panel_a_line_says_how_to_resume(
    watch: Watch, model: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    run = watch(model, probes=None)
    run.pause_when(step=1)
    with training(run, model):
        held_at(run)
        assert "paused at step 1; run.resume() continues" in capsys.readouterr().out


def test_it_is_disarmed_edited_and_removed_from_any_thread(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    high = run.pause_when("", "loss", "> 5")
    same = run.pause_when("", "loss", "> 5")
    assert (len(run.breakpoints), same.id) == (1, high.id)
    gone = run.pause_when(nan=True)
    gone.remove()
    gone.remove()
    high.armed = False
    background = logging(run, model, [9, math.nan, 1, 9])
    background.wait(PATIENCE_S)
    assert pauses(run) == []
    high.number = 8
    high.armed = True
    assert repr(high) == "<Breakpoint loss > 8: armed>"
    background = logging(run, model, [7, 9, 1])
    held_at(run)
    assert run.status().pause_reason.endswith("loss 9 > 8")
    go_on(run, lambda: not background.running)
    kinds = [json.loads(e.detail)["what"] for e in run.events if e.kind == "breakpoint"]
    assert kinds == ["added", "added", "removed", "armed", "changed", "armed"]


def test_a_panel_does_the_same_by_requests(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model):
        ticket = applied(run, AddBreakpoint(AtStep(10**6)))
        assert ticket.text == "pauses when: at step 1000000"
        (info,) = run.controls.breakpoint_infos()
        assert applied(run, EditBreakpoint(info.id, False, 10**7)).state == "applied"
        (info,) = run.controls.breakpoint_infos()
        assert (info.armed, info.condition.number) == (False, 10**7)
        refused = applied(run, EditBreakpoint(info.id, None, 0.5))
        assert (refused.state, refused.text) == (
            "refused",
            "step=0.5; allowed: a whole number from 0",
        )
        applied(run, RemoveBreakpoint(info.id))
        assert run.controls.breakpoint_infos() == []
        assert applied(run, RemoveBreakpoint(info.id)).state == "refused"


def test_stop_ends_a_training_that_a_breakpoint_holds(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(step=2)
    with training(run, model) as loop:
        assert held_at(run) == 2
    assert loop.background.stopped
    assert isinstance(loop.background.error, TrainingStopped | type(None))
