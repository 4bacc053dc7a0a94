"""Training in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.run.attach.requests import Attach, Control, Detach
from notebook_probe.run.background import Background
from tests.models import sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import (
    PATIENCE_S,
    Training,
    batch,
    training,
    wait_until,
)


def test_the_result_of_the_function_comes_back(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)

    def loop() -> float:
        return [train_step(model, optimizer, batch(step)) for step in range(5)][-1]

    training = run.train_in_background(loop)
    assert 0 < training.wait(PATIENCE_S) < 10
    assert not training.running
    assert repr(training) == "<Background training: finished>"
    assert len(run.streams["every_1"].steps()) == 5, "the last step is closed"


def test_a_step_cannot_be_closed_from_outside_while_its_thread_is_paused(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.pause()
    begun = run.train_in_background(lambda: train_step(model, sgd(model), batch(0)))
    wait_until(lambda: run.status().state == "paused")
    with pytest.raises(RuntimeError, match=r"is paused: run\.resume\(\) continues it"):
        run.step()
    run.resume()
    begun.wait(PATIENCE_S)


def test_an_error_is_shown_and_raised_where_it_is_waited_for(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)

    def loop() -> None:
        train_step(model, sgd(model), batch(0))
        raise FloatingPointError("loss is nan")

    training = run.train_in_background(loop)
    for _ in range(2):
        with pytest.raises(FloatingPointError, match="loss is nan"):
            training.wait(PATIENCE_S)
    status = run.status()
    assert status.state == "failed"
    assert status.problem.startswith("FloatingPointError: loss is nan (line ")
    assert status.problem.endswith(", in loop)")
    assert repr(training) == f"<Background training: {status.problem}>"


def test_a_training_that_fails_before_its_first_step_has_failed_too(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)

    def loop() -> None:
        raise OSError("no such data")

    with pytest.raises(OSError, match="no such data"):
        run.train_in_background(loop).wait(PATIENCE_S)
    assert run.status().state == "failed"
    for step in range(2):
        train_step(model, sgd(model), batch(step))
    assert run.status().state == "training", "until training goes on"


def test_nothing_trains_any_more_once_stop_has_ended_it(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    loop = Training(run, model)
    wait_until(lambda: loop.n_steps > 2)
    run.controls.put(Control("stop"))
    loop.background.wait(PATIENCE_S)
    assert run.status().state == "idle"


def test_stop_is_no_error_of_a_background_training(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    loop = Training(run, model)
    wait_until(lambda: loop.n_steps > 2)
    assert run.status().background
    run.stop()
    assert loop.background.wait(PATIENCE_S) is None
    assert loop.background.stopped
    assert loop.background.error is None
    assert repr(loop.background) == "<Background training: stopped>"
    assert run.status().problem == ""
    assert not run.status().background


def test_a_training_is_waited_for_until_a_step(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    go_on = threading.Event()
    optimizer = sgd(model)

    def loop() -> str:
        for step in range(6):
            if step == 4:
                assert go_on.wait(PATIENCE_S)
            train_step(model, optimizer, batch(step))
        return "done"

    training = run.train_in_background(loop)
    assert training.wait(PATIENCE_S, step=3) is None
    assert training.running, "it is held before step 4, three updates being complete"
    with pytest.raises(TimeoutError, match=r"training is at step 3 after 0\.0 s, not at 5"):
        training.wait(0.0, step=5)
    go_on.set()
    assert training.wait(PATIENCE_S, step=100) == "done", "whatever ends it ends the waiting"
    assert training.wait(PATIENCE_S, step=2) == "done"


def test_who_waits_for_a_step_hears_of_an_error(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)

    def loop() -> None:
        train_step(model, optimizer, batch(0))
        raise FloatingPointError("loss is nan")

    training = run.train_in_background(loop)
    for step in (100, 1):
        with pytest.raises(FloatingPointError, match="loss is nan"):
            training.wait(PATIENCE_S, step=step)


def test_a_training_does_not_wait_for_itself(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    begun: list[Background] = []
    has_begun = threading.Event()

    def loop() -> None:
        assert has_begun.wait(PATIENCE_S)
        begun[0].wait(step=5)

    begun.append(run.train_in_background(loop))
    has_begun.set()
    with pytest.raises(RuntimeError, match="it would wait for itself"):
        begun[0].wait(PATIENCE_S)


def test_a_stop_counts_from_the_start_on(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    trained: list[int] = []

    def begun() -> Background:
        may_begin = threading.Event()

        def loop() -> None:
            assert may_begin.wait(PATIENCE_S)
            for step in range(3):
                run.boundary()
                trained.append(step)
                train_step(model, optimizer, batch(step))

        training = run.train_in_background(loop)
        training.stop()
        may_begin.set()
        return training

    for _ in range(2):  # also where one was stopped before the same step
        training = begun()
        assert training.wait(PATIENCE_S) is None
        assert training.stopped
    training.stop()  # nothing trains: it is not kept for the next one
    assert not trained
    run.train_in_background(lambda: train_step(model, optimizer, batch(0))).wait(PATIENCE_S)
    assert run.status().step == 1


def test_a_second_start_is_refused_while_the_first_runs(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model) as loop:
        with pytest.raises(RuntimeError, match="already runs in the background; press Stop"):
            run.train_in_background(lambda: None)
        with pytest.raises(TimeoutError, match=r"still runs after 0\.01 s"):
            loop.background.wait(0.01)
    run.train_in_background(lambda: None).wait(PATIENCE_S)


def modes() -> dict[str, object]:
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "dtype": torch.get_autocast_dtype("cpu"),
        "device": torch.empty(0).device.type,
    }


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.enable_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: torch.device("meta"),
    ],
    ids=["no_grad", "enable_grad", "inference_mode", "autocast", "default device"],
)
def test_torchs_modes_are_carried_over(
    mode: Callable[[], Any], watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    with mode():
        here = modes()
        there = run.train_in_background(modes).wait(PATIENCE_S)
    assert there == here
    assert modes() == run.train_in_background(modes).wait(PATIENCE_S)


def test_context_variables_are_carried_over(watch: Watch, model: nn.Module) -> None:
    """In a notebook they say which cell an output belongs to."""
    cell: ContextVar[str] = ContextVar("cell")
    run = watch(model, probes=None)
    token = cell.set("the third")
    begun = run.train_in_background(cell.get)
    cell.reset(token)
    assert begun.wait(PATIENCE_S) == "the third"


@pytest.mark.parametrize("own_thread", [False, True])
def test_settle_leaves_the_step_of_another_thread_alone(
    own_thread: bool, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    first, last = (sgd(model.get_submodule(path)) for path in ("0", "2"))
    between, go_on = threading.Event(), threading.Event()

    def loop() -> None:
        for step in range(2):
            model(batch(step)).square().mean().backward()
            first.step()
            if step == 0:
                between.set()
                go_on.wait(PATIENCE_S)
            last.step()

    def begun() -> Callable[[float], object]:
        if not own_thread:
            return run.train_in_background(loop).wait
        thread = threading.Thread(target=loop)
        thread.start()
        return thread.join

    wait = begun()
    assert between.wait(PATIENCE_S)
    run.controls.settle()
    run.attach("0", "weight_norm")
    run.log(seen=1.0)
    go_on.set()
    wait(PATIENCE_S)
    run.controls.settle()
    assert run.series("", "seen").step.values.tolist() == [0]
    assert run.status().step == 2
    assert run.series("0", "weight_norm").step.values.tolist() == [1]


def test_a_storm_of_changes_from_another_thread_loses_no_step(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"2": ["output_norm"]})
    with training(run, model) as loop:
        for cycle in range(40):
            handle = run.attach("*", ["input_norm", "output_std"])
            run.controls.put(Attach(("0",), "grad_norm", f"every({1 + cycle % 3})"))
            run.data.sizes  # noqa: B018
            handle.remove()
            run.controls.put(Detach(("0",)))
        wait_until(lambda: loop.n_steps > 5)
    steps = run.series("2", "output_norm").step.values.tolist()
    assert steps == list(range(len(steps)))
    assert run.status().problem == ""
    assert not run.status().errors


def test_an_examination_meanwhile_changes_no_number_of_it(watch: Watch) -> None:
    """It draws from the generators that the training uses, so the training waits for it."""

    def losses(examined: bool) -> list[float]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        run, optimizer = watch(model, probes=None), sgd(model)
        begun, may_end = threading.Event(), threading.Event()

        def loop() -> list[float]:
            found: list[float] = []
            while len(found) < 20 or not may_end.is_set():
                found.append(train_step(model, optimizer, torch.randn(5, 4)))
                begun.set()
            return found[:20]

        training = run.train_in_background(loop)
        begun.wait(PATIENCE_S)
        if examined:
            target = torch.zeros(5, dtype=torch.long)
            run.examine(torch.ones(5, 4), target, nn.functional.cross_entropy)
        may_end.set()
        return training.wait(PATIENCE_S)

    assert losses(examined=True) == losses(examined=False)
