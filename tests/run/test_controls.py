"""Pause, resume, step and stop at the step boundary, and training in the background."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import TrainingStopped
from notebook_probe.run.requests import Attach, Control, Detach, Request, Ticket
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
PATIENCE_S = 30.0
MANY = 1_000_000


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)


def applied(run: nbp.Run, request: Request) -> Ticket:
    """Put a request and wait until the training thread has seen it."""
    ticket = run.put(request)
    wait_until(lambda: ticket.state != "queued")
    return ticket


def held_at(run: nbp.Run) -> int:
    """Wait until the training is held, and say before which step."""
    wait_until(lambda: run.status().state == "paused")
    return run.status().step


class Training:
    """A training that runs in the background until it is told to end."""

    def __init__(self, run: nbp.Run, model: nn.Module, by_hand: bool = False) -> None:
        self.run, self.n_steps = run, 0
        self._optimizer = None if by_hand else sgd(model)
        self._model = model
        self.background = run.train_in_background(self._loop)

    def _loop(self) -> str:
        while self.n_steps < MANY:
            if self._optimizer is None:
                self._model(batch(self.n_steps)).square().mean().backward()
                self.run.step()
            else:
                train_step(self._model, self._optimizer, batch(self.n_steps))
            self.n_steps += 1
        return "done"

    def end(self) -> None:
        self.run.put(Control("stop"))
        self.background.wait(PATIENCE_S)


@contextmanager
def training(run: nbp.Run, model: nn.Module, by_hand: bool = False) -> Iterator[Training]:
    begun = Training(run, model, by_hand)
    try:
        yield begun
    finally:
        begun.end()


@pytest.fixture
def model() -> nn.Module:
    return made(mlp)


def test_pause_holds_the_training_and_resume_lets_it_go(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 3)
        ticket = applied(run, Control("pause"))
        assert (ticket.state, ticket.text) == ("applied", "paused")
        step = held_at(run)
        assert step == ticket.applied_step
        assert run.data.step.values.tolist() == list(range(step)), "the step before is complete"
        callbacks: list[int] = []
        remove = run.each_boundary(lambda: callbacks.append(loop.n_steps))
        wait_until(lambda: len(callbacks) > 3)
        remove()
        assert set(callbacks) == {step}, "no step while it is paused"
        assert applied(run, Control("resume")).text == "resumed"
        wait_until(lambda: loop.n_steps > step + 3)


@pytest.mark.parametrize("by_hand", [False, True])
def test_each_step_request_takes_exactly_one_step(
    by_hand: bool, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    run.put(Control("pause"))
    with training(run, model, by_hand):
        first = held_at(run)
        for taken in range(1, 4):
            ticket = run.put(Control("step"))
            wait_until(lambda ticket=ticket: ticket.state == "applied")  # type: ignore[misc]
            wait_until(lambda taken=taken: run.status().step >= first + taken)  # type: ignore[misc]
            assert held_at(run) == first + taken


def test_a_step_request_while_training_runs_pauses_after_it(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model):
        ticket = applied(run, Control("step"))
        assert held_at(run) == ticket.applied_step + 1


def test_stop_ends_the_loop_at_a_boundary(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)

    def loop() -> None:
        for step in range(MANY):
            train_step(model, optimizer, batch(step))
            if step == 4:
                run.put(Control("stop"))

    with pytest.raises(TrainingStopped, match="stopped before step 5; everything recorded is kept"):
        loop()
    assert run.data.step.values.tolist() == [0, 1, 2, 3, 4]
    for step in range(2):
        train_step(model, optimizer, batch(step))
    assert run.data.step.values.tolist() == [0, 1, 2, 3, 4, 5, 6], "training may go on"


def test_stop_passes_through_except_exception(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    run.put(Control("stop"))

    def careless() -> None:
        with suppress(Exception):  # skips whatever is wrong with a batch
            train_step(model, optimizer, batch(0))

    with pytest.raises(KeyboardInterrupt):
        careless()


def test_stop_ends_a_pause_too(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.put(Control("pause"))
    loop = Training(run, model)
    held_at(run)
    loop.end()
    assert loop.background.stopped
    assert loop.n_steps == 0
    assert run.status().state != "paused"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_the_interrupt_button_ends_a_pause(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    run.put(Control("pause"))

    def press() -> None:
        held_at(run)
        _thread.interrupt_main()

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        train_step(model, optimizer, batch(1))
    presser.join()
    for step in (1, 2):
        train_step(model, optimizer, batch(step))
    assert run.data.step.values.tolist() == [0, 1, 2]


def test_requests_attach_and_detach_while_training_runs(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"2": ["output_norm"]})
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 2)
        begun = applied(run, Attach(("0", "1"), "output_mean", "every(2)"))
        assert begun.text == "output_mean at 2 modules"
        wait_until(lambda: loop.n_steps > begun.applied_step + 6)
        ended = applied(run, Detach(("0",)))
        assert ended.text == "detached 1 probe"
        wait_until(lambda: loop.n_steps > ended.applied_step + 3)
    steps = run.series("0", "output_mean").step.values.tolist()
    due = [s for s in range(begun.applied_step, ended.applied_step) if s % 2 == 0]
    assert steps == due
    assert run.series("1", "output_mean").step.values[-1] > due[-1]
    kinds = [(event.step, event.kind) for event in run.events]
    assert kinds == [(begun.applied_step, "attach"), (ended.applied_step, "detach")]


def test_requests_are_applied_while_paused(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.put(Control("pause"))
    with training(run, model):
        step = held_at(run)
        assert applied(run, Attach(("0",), "output_mean")).applied_step == step
        assert [probe.quantity for probe in run.probes()] == ["output_mean"]
        assert run.probes()[0].attached_step == step


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Attach(("nowhere",), "output_mean"), "no module matches 'nowhere'"),
        (Attach(("0",), "outptu_mean"), "close: 'output_mean'"),
        (Attach(("0",), "output_mean", "often"), "schedule 'often' does not parse"),
        (Attach(("1",), "weight_norm"), "needs 'weight'; '1' (ReLU) has none"),
        (Attach((), "output_mean"), "an empty selection names no module"),
        (Detach(("2",)), "nothing is attached at 2"),
    ],
)
def test_a_request_that_cannot_be_done_is_refused_in_words(
    request_: Request, text: str, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    ticket = run.put(request_)
    train_step(model, sgd(model), batch(0))
    assert ticket.state == "refused"
    assert text in ticket.text
    assert run.data.sizes["step"] == 1


def test_a_request_that_fails_in_any_way_does_not_end_the_training(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})

    def broken_plugin(group: str) -> list[Any]:
        raise ImportError("a plugin that is half installed")

    monkeypatch.setattr("notebook_probe.registry.entry_points", broken_plugin)
    ticket = run.put(Attach(("0",), "from_a_plugin"))
    train_step(model, sgd(model), batch(0))
    assert (ticket.state, ticket.text) == (
        "refused",
        "ImportError: a plugin that is half installed",
    )


def test_what_waits_when_a_run_closes_is_refused_and_so_is_what_comes_later(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    waiting = run.put(Control("pause"))
    assert waiting.state == "queued"
    run.close()
    late = run.put(Control("stop"))
    for ticket in (waiting, late):
        assert (ticket.state, ticket.text) == ("refused", "the run is closed")


def test_closing_a_paused_run_lets_the_training_go(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    run.put(Control("pause"))

    def loop() -> int:
        for step in range(5):
            train_step(model, optimizer, batch(step))
        return 5

    begun = run.train_in_background(loop)
    held_at(run)
    run.close()
    assert begun.wait(PATIENCE_S) == 5
    assert run.status().state == "finished"


def test_closing_while_another_thread_trains_disturbs_neither(
    watch: Watch, model: nn.Module
) -> None:
    for _ in range(10):
        run = watch(model)
        loop = Training(run, model)
        wait_until(lambda loop=loop: loop.n_steps > 2)  # type: ignore[misc]
        seen = loop.n_steps
        run.close()
        wait_until(lambda loop=loop, seen=seen: loop.n_steps > seen + 2)  # type: ignore[misc]
        assert loop.background.error is None
        again = watch(model, probes=None)
        again.put(Control("stop"))
        loop.background.wait(PATIENCE_S)
        again.close()
        steps = nbp.open_run(run.location).series("0", "output_norm").step.values
        assert steps.tolist() == list(range(len(steps)))


def test_a_callback_that_raises_is_shown_and_stops_nothing(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)

    def broken() -> None:
        raise RuntimeError("a panel's trouble")

    run.each_boundary(broken)
    train_step(model, sgd(model), batch(0))
    assert run.status().problem == "RuntimeError: a panel's trouble"


def test_a_callback_is_called_at_every_boundary_on_the_training_thread(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    seen: list[int] = []
    remove = run.each_boundary(lambda: seen.append(threading.get_ident()))
    for step in range(3):
        train_step(model, optimizer, batch(step))
    remove()
    remove()
    train_step(model, optimizer, batch(3))
    assert seen == [threading.get_ident()] * 3


# ---------------------------------------------------------------- in the background


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


def test_stop_is_no_error_of_a_background_training(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    loop = Training(run, model)
    wait_until(lambda: loop.n_steps > 2)
    assert run.status().background
    run.put(Control("stop"))
    assert loop.background.wait(PATIENCE_S) is None
    assert loop.background.stopped
    assert loop.background.error is None
    assert repr(loop.background) == "<Background training: stopped>"
    assert run.status().problem == ""
    assert not run.status().background


def test_a_second_start_is_refused_while_the_first_runs(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model):
        with pytest.raises(RuntimeError, match="already runs in the background; press Stop"):
            run.train_in_background(lambda: None)
        with pytest.raises(TimeoutError, match=r"still runs after 0\.01 s"):
            run._background.wait(0.01)  # type: ignore[union-attr]
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
    run.settle()
    run.attach("0", "weight_norm")
    run.log(seen=1.0)
    go_on.set()
    wait(PATIENCE_S)
    run.settle()
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
            run.put(Attach(("0",), "grad_norm", f"every({1 + cycle % 3})"))
            run.data.sizes  # noqa: B018
            handle.remove()
            run.put(Detach(("0",)))
        wait_until(lambda: loop.n_steps > 5)
    steps = run.series("2", "output_norm").step.values.tolist()
    assert steps == list(range(len(steps)))
    assert run.status().problem == ""
    assert not run.status().errors
