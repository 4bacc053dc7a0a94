"""Pause, resume, step and stop at the step boundary, and training in the background."""

from __future__ import annotations

import _thread
import threading
from contextlib import suppress
from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import TrainingStopped
from notebook_probe.run.attach.requests import Attach, Control, Detach, Request
from tests.models import sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import (
    MANY,
    PATIENCE_S,
    Training,
    applied,
    batch,
    held_at,
    training,
    wait_until,
)
from tests.run.oracle import norm_of


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
        remove = run.controls.each_boundary(lambda: callbacks.append(loop.n_steps))
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
    run.controls.put(Control("pause"))
    with training(run, model, by_hand):
        first = held_at(run)
        for taken in range(1, 4):
            ticket = run.controls.put(Control("step"))
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
                run.controls.put(Control("stop"))

    with pytest.raises(TrainingStopped, match="stopped before step 5; everything recorded is kept"):
        loop()
    assert run.data.step.values.tolist() == [0, 1, 2, 3, 4]
    for step in range(2):
        train_step(model, optimizer, batch(step))
    assert run.data.step.values.tolist() == [0, 1, 2, 3, 4, 5, 6], "training may go on"


def test_stop_passes_through_except_exception(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    run.controls.put(Control("stop"))

    def careless() -> None:
        with suppress(Exception):  # skips whatever is wrong with a batch
            train_step(model, optimizer, batch(0))

    with pytest.raises(KeyboardInterrupt):
        careless()


def test_stop_ends_a_pause_too(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.controls.put(Control("pause"))
    loop = Training(run, model)
    held_at(run)
    loop.end()
    assert loop.background.stopped
    assert loop.n_steps == 0
    assert run.status().state != "paused"


@pytest.mark.usefixtures("interruptible")
def test_the_interrupt_button_ends_a_pause(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    run.controls.put(Control("pause"))

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


def test_a_request_without_a_place_is_applied_where_it_fits(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model):
        assert applied(run, Attach(None, "weight_norm")).text == "weight_norm at 2 modules"
        refused = run.controls.put(Attach(None, "bn_mean_tid"))
        wait_until(lambda: refused.state == "refused")
        assert "keeps no running mean" in refused.text


def test_requests_are_applied_while_paused(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.controls.put(Control("pause"))
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
    ticket = run.controls.put(request_)
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
    ticket = run.controls.put(Attach(("0",), "from_a_plugin"))
    train_step(model, sgd(model), batch(0))
    assert (ticket.state, ticket.text) == (
        "refused",
        "ImportError: a plugin that is half installed",
    )


def test_what_is_attached_already_is_refused_in_words_and_what_is_new_of_it_is_not(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    asked = [
        Attach(("0",), "weight_norm", "every(2)"),
        Attach(("0",), "weight_norm", "every(2)"),
        Attach(("0", "2"), "weight_norm", "every 2"),
        Attach(("0",), "weight_norm", "every(3)"),
    ]
    tickets = [run.controls.put(one) for one in asked]
    train_step(model, sgd(model), batch(0))
    assert [one.state for one in tickets] == ["applied", "refused", "applied", "applied"]
    assert tickets[1].text == "weight_norm at 1 module: attached already, every(2)"
    assert len(run.status().probes) == 3


def test_a_request_is_queued_at_the_step_that_the_status_tells(
    watch: Watch, model: nn.Module
) -> None:
    run, optimizer = watch(model, probes=None), sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    ticket = run.controls.put(Attach(("0",), "weight_norm"))
    assert ticket.queued_step == run.status().step == 3
    train_step(model, optimizer, batch(3))
    assert ticket.applied_step == 3


def test_what_waits_when_a_run_closes_is_refused_and_so_is_what_comes_later(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    waiting = run.controls.put(Control("pause"))
    assert waiting.state == "queued"
    run.close()
    late = run.controls.put(Control("stop"))
    for ticket in (waiting, late):
        assert (ticket.state, ticket.text) == ("refused", "the run is closed")


def test_closing_a_paused_run_lets_the_training_go(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    run.controls.put(Control("pause"))

    def loop() -> int:
        for step in range(5):
            train_step(model, optimizer, batch(step))
        return 5

    begun = run.train_in_background(loop)
    held_at(run)
    run.close()
    assert begun.wait(PATIENCE_S) == 5
    assert run.status().state == "finished"


@pytest.mark.slow
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
        again.controls.put(Control("stop"))
        loop.background.wait(PATIENCE_S)
        again.close()
        steps = nbp.open_run(run.location).series("0", "output_norm").step.values
        assert steps.tolist() == list(range(len(steps)))


def test_a_callback_that_raises_is_shown_and_stops_nothing(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)

    def broken() -> None:
        raise RuntimeError("a panel's trouble")

    run.controls.each_boundary(broken)
    train_step(model, sgd(model), batch(0))
    assert run.status().problem == "RuntimeError: a panel's trouble"


def test_a_callback_is_called_at_every_boundary_on_the_training_thread(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    seen: list[int] = []
    remove = run.controls.each_boundary(lambda: seen.append(threading.get_ident()))
    for step in range(3):
        train_step(model, optimizer, batch(step))
    remove()
    remove()
    train_step(model, optimizer, batch(3))
    assert seen == [threading.get_ident()] * 3


def test_what_is_attached_as_the_training_is_stopped_sees_a_part_that_is_called_alone(
    watch: Watch, model: nn.Module
) -> None:
    run, optimizer = watch(model, probes=None), sgd(model)
    train_step(model, optimizer, batch(0))
    run.controls.put(Attach(("0",), "output_norm"))
    run.controls.put(Control("stop"))
    with pytest.raises(TrainingStopped):
        model(batch(1))
    part = model.get_submodule("0")
    output = part(batch(1))
    output.sum().backward()
    optimizer.step()
    run.controls.settle()
    (value,) = run.series("0", "output_norm").values.tolist()
    assert value == pytest.approx(norm_of(output))


def test_who_waits_for_an_answer_is_told_when_it_is_there_and_when_training_is_held_or_let_go(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    told: list[bool] = []
    remove = run.controls.each_news(
        lambda: told.append(run.controls.status_head().state == "paused")
    )
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 3)
        assert told == [], "nothing is asked of the training while nobody waits"
        assert applied(run, Attach(("0",), "output_norm")).state == "applied"
        wait_until(lambda: told == [False])
        applied(run, Control("pause"))
        wait_until(lambda: told == [False, False, True])
        applied(run, Control("resume"))
        wait_until(lambda: told == [False, False, True, True, False])
        remove()
        applied(run, Control("pause"))
        held_at(run)
        assert len(told) == 5
        applied(run, Control("resume"))
