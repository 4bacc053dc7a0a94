"""Pause, Step and Stop before a batch is drawn, in loops that call `run.boundary`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.probes import observer, step_sequence
from notebook_probe.probes.due import interval
from notebook_probe.probes.step import frame, step_values
from notebook_probe.run.attach.requests import Attach, Control
from notebook_probe.run.loop import batches
from tests.models import sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import MANY, PATIENCE_S, applied, batch, held_at, wait_until


class Loop:
    """A loop that counts the batches it has drawn, and the updates it has made."""

    def __init__(self, run: nbp.Run, model: nn.Module, with_boundary: bool = True) -> None:
        self.run, self.model, self.optimizer = run, model, sgd(model)
        self.with_boundary = with_boundary
        self.drawn = self.updates = 0

    def step(self) -> None:
        if self.with_boundary:
            self.run.boundary()
        self.drawn += 1
        train_step(self.model, self.optimizer, batch(self.drawn))
        self.updates += 1

    def __call__(self) -> None:
        while self.updates < MANY:
            self.step()


@pytest.mark.parametrize(("with_boundary", "lost"), [(True, 0), (False, 1)])
def test_stop_loses_no_batch_where_the_loop_passes_the_boundary(
    with_boundary: bool, lost: int, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    loop = Loop(run, model, with_boundary)
    for _ in range(4):
        loop.step()
    ticket = run.stop()
    with pytest.raises(nbp.TrainingStopped, match="stopped before step 4"):
        loop()
    assert (ticket.state, ticket.text) == ("applied", "stopped")
    assert (loop.updates, loop.drawn - loop.updates) == (4, lost)
    assert run.data.step.values.tolist() == [0, 1, 2, 3]
    loop.step()
    assert run.data.step.values.tolist() == [0, 1, 2, 3, 4], "training may go on"


@pytest.mark.parametrize(("with_boundary", "drawn"), [(True, 0), (False, 1)])
def test_pause_and_step_hold_it_with_no_batch_in_hand(
    with_boundary: bool, drawn: int, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    run.controls.put(Control("pause"))
    loop = Loop(run, model, with_boundary)
    background = run.train_in_background(loop)
    first = held_at(run)
    for taken in range(3):
        assert (loop.updates, loop.drawn) == (taken, taken + drawn)
        assert run.data.step.values.tolist() == [*range(taken)], "what was trained is complete"
        applied(run, Control("step"))
        wait_until(lambda taken=taken: loop.updates == taken + 1)  # type: ignore[misc]
        assert held_at(run) == first + taken + 1
    applied(run, Attach(("1",), "output_mean"))
    run.controls.put(Control("resume"))
    wait_until(lambda: loop.updates > 8)
    run.controls.put(Control("stop"))
    background.wait(PATIENCE_S)
    assert background.stopped
    assert loop.drawn - loop.updates == drawn
    assert run.series("1", "output_mean").step.values[0] == 3
    assert len(run.series("0", "output_norm")) == loop.updates


def test_what_is_requested_acts_at_the_boundary(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    loop = Loop(run, model)
    loop.step()
    ticket = run.controls.put(Attach(("0",), "output_mean"))
    run.boundary()
    assert (ticket.state, ticket.applied_step) == ("applied", 1)
    again = run.controls.put(Attach(("0",), "output_norm"))
    run.boundary()
    assert again.state == "queued", "the gate is passed once per step"
    loop.step()
    assert run.series("0", "output_mean").step.values.tolist() == [1]


def test_numbers_are_the_same_with_and_without(watch: Watch, model: nn.Module) -> None:
    twin = torch.nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    twin.load_state_dict(model.state_dict())
    runs = watch(model), watch(twin)
    for run, one, with_boundary in zip(runs, (model, twin), (True, False), strict=True):
        loop = Loop(run, one, with_boundary)
        for _ in range(5):
            loop.step()
    mine, its = (run.data.drop_vars("time").load().drop_attrs(deep=False) for run in runs)
    assert mine.identical(its)
    for name, value in model.state_dict().items():
        assert torch.equal(value, twin.state_dict()[name])


@pytest.mark.parametrize("due", [nbp.Every(1), nbp.Every(4), nbp.Steps({MANY})])
def test_a_number_is_of_the_step_before_or_after_it_whatever_is_due(
    due: nbp.Schedule, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=[])
    run.attach("0", "output_norm", due)
    optimizer, n_steps = sgd(model), 12
    for step in range(n_steps):
        run.boundary()
        if step % 3 == 1:
            run.log(ahead=step)
        train_step(model, optimizer, batch(step))
        run.log(behind=step)
    for name, expected in {"ahead": [1, 4, 7, 10], "behind": [*range(n_steps)]}.items():
        logged = run.series("", name).dropna("step")
        assert logged.step.values.tolist() == logged.values.tolist() == expected


def test_amid_micro_batches_it_does_nothing(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    run.controls.put(Control("stop"))
    for step in range(3):
        for micro in range(2):
            if (step, micro) == (0, 0):
                with pytest.raises(nbp.TrainingStopped):
                    run.boundary()
            run.boundary()
            model(batch(micro)).square().mean().backward()
            if (step, micro) == (1, 0):
                stop = run.controls.put(Control("stop"))
                run.boundary()
                assert stop.state == "queued"
        optimizer.step()
        if step == 1:
            with pytest.raises(nbp.TrainingStopped, match="before step 2"):
                run.boundary()
    assert run.data.calls.sel(module="0").values.tolist() == [2, 2, 2]


def test_where_steps_are_closed_by_hand_it_closes_none(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    for step in range(3):
        run.boundary()
        model(batch(step)).square().mean().backward()
        run.boundary()
        run.step()
    assert run.data.step.values.tolist() == [0, 1, 2]
    assert run.data.calls.sel(module="0").values.tolist() == [1, 1, 1]


def test_a_closed_run_has_no_boundary(watch: Watch, model: nn.Module) -> None:
    run = watch(model)
    run.close()
    with pytest.raises(nbp.ClosedRunError):
        run.boundary()


class Clock:
    """A clock that only goes on when told to."""

    now = 100.0
    time_ns = staticmethod(time.time_ns)

    def perf_counter(self) -> float:
        return self.now


def test_the_wait_for_a_batch_is_part_of_the_step_that_it_is_for(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (frame, interval, step_values, batches, observer, step_sequence):
        monkeypatch.setattr(module, "time", clock)
    run = watch(model, probes={"": ["step_time", "data_wait_share"]})
    optimizer = sgd(model)

    def work(*_: object) -> None:
        clock.now += 3.0

    def slow() -> Iterator[int]:
        for step in range(4):
            clock.now += 1.0
            yield step

    model.register_forward_hook(work)
    draw: Iterator[int] = iter(run.batches(slow()))
    for _ in range(4):
        run.boundary()
        train_step(model, optimizer, batch(next(draw)))
    run.boundary()
    assert run.series("", "step_time").values.tolist() == pytest.approx([4.0] * 4)
    assert run.series("", "data_wait_share").values.tolist() == pytest.approx([0.25] * 4)
    clock.now += 1000.0
    run.controls.settle()
    train_step(model, optimizer, batch(0))
    run.controls.settle()
    assert float(run.series("", "step_time")[-1]) == pytest.approx(3.0), "a pause is no step's"
