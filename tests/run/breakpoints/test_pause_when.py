"""Training paused by a step, a series, an alert and NaN, after a step or before its update."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Attach, Control
from tests.models import made, mlp, sgd, train_step
from tests.run.breakpoints.trainings import batch, go_on, logging, pauses
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S, held_at, wait_until


def test_it_is_held_before_the_step_that_was_asked_for(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    handle = run.pause_when(step=3)
    background = logging(run, model, [0.0] * 6)
    assert held_at(run) == 3
    assert run.status().pause_reason == "paused at step 3"
    assert "paused at step 3" in repr(run.status())
    assert run.data.step.values.tolist() == [0, 1, 2]
    assert repr(run.breakpoints) == "[<Breakpoint at step 3: armed, paused at step 3>]"
    assert handle.last_step == 3
    go_on(run, lambda: not background.running)
    assert run.status().pause_reason == ""
    (told,) = pauses(run)
    assert (told["condition"], told["step"], told["threshold"]) == ("at step 3", 3, 3)


def test_a_series_holds_it_after_the_row_that_meets_the_condition_and_says_so(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    run.pause_when("", "loss", "> 10")
    background = logging(run, model, [1, 2, 12.5, 13, 2, 11])
    assert held_at(run) == 3
    assert run.status().pause_reason == "paused at step 2: loss 12.5 > 10"
    run.resume()
    wait_until(lambda: len(pauses(run)) == 2)
    assert held_at(run) == 6
    assert [(one["step"], one["value"]) for one in pauses(run)] == [(2, 12.5), (5, 11.0)]
    go_on(run, lambda: not background.running)


@pytest.mark.parametrize(
    ("when", "for_rows", "steps"),
    [
        ("> 2", 1, [2, 5]),
        ("> 2", 2, [3]),
        ("<= 1", 1, [0, 4]),
        ("crosses 2", 1, [2, 4, 5]),
        ("< -1", 1, []),
    ],
)
def test_each_comparison_holds_where_it_would_by_hand(
    when: str, for_rows: int, steps: list[int], watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.pause_when("", "loss", when, for_rows=for_rows)
    background = logging(run, model, [1, 2, 3, 4, 0.5, 9])
    for n in range(1, len(steps) + 1):
        wait_until(lambda n=n: len(pauses(run)) >= n)  # type: ignore[misc]
        run.resume()
    background.wait(PATIENCE_S)
    assert [one["step"] for one in pauses(run)] == steps
    assert run.would_pause("", "loss", when, for_rows=for_rows).tolist() == steps


def test_a_measured_quantity_is_checked_where_it_is_measured(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": [["grad_norm", "every(2)"]]})
    run.pause_when("0", "grad_norm", "> -1", for_rows=2)
    background = logging(run, model, [0.0] * 6)
    assert held_at(run) == 3
    (told,) = pauses(run)
    found = run.series("0", "grad_norm").sel(step=2).item()
    assert (told["module"], told["quantity"], told["step"]) == ("0", "grad_norm", 2)
    assert told["value"] == pytest.approx(found, rel=1e-6)
    go_on(run, lambda: not background.running)


def test_the_first_condition_is_the_reason_and_the_others_are_counted(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.pause_when("", "loss", "> 5")
    run.pause_when("", "loss", "> 6")
    background = logging(run, model, [1, 7, 1])
    held_at(run)
    assert run.status().pause_reason == "paused at step 1: loss 7 > 5 … and 1 more"
    assert [info.pauses for info in run.controls.breakpoint_infos()] == [True, True]
    go_on(run, lambda: not background.running)
    assert [info.pauses for info in run.controls.breakpoint_infos()] == [False, False]


def test_an_alert_holds_it_at_the_step_after_its_row(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(alert="severe")
    background = logging(run, model, [1.0, 1.0, math.nan, 1.0])
    assert held_at(run) == 3
    assert (
        run.status().pause_reason
        == "paused at step 2: nonfinite_loss at the model: the loss is NaN"
    )
    (told,) = pauses(run)
    assert (told["rule"], told["quantity"], told["step"]) == ("nonfinite_loss", "loss", 2)
    go_on(run, lambda: not background.running)


def test_what_came_of_a_severe_alert_holds_it_no_second_time_but_by_its_name(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    severe = run.pause_when(alert="severe")
    background = logging(run, model, [*[1.0] * 12, 20, 30, 40, math.nan, 1])
    wait_until(lambda: len(pauses(run)) == 1)
    by_name = run.pause_when(alert="nonfinite_loss")
    run.resume()
    wait_until(lambda: len(pauses(run)) == 2)
    assert [(one["rule"], one["step"]) for one in pauses(run)] == [
        ("diverging_loss", 13),
        ("nonfinite_loss", 15),
    ]
    assert (severe.last_step, by_name.last_step) == (13, 15)
    go_on(run, lambda: not background.running)
    (cause,) = run.alerts.causes
    assert [alert.rule for alert in cause] == ["diverging_loss", "nonfinite_loss"]


def test_a_severe_alert_holds_it_that_came_of_one_before_the_breakpoint_was_armed(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    handle = run.pause_when(alert="severe")
    handle.armed = False
    first = run.pause_when(alert="diverging_loss")
    background = logging(run, model, [*[1.0] * 12, 20, 30, 40, math.nan, 1])
    wait_until(lambda: len(pauses(run)) == 1)
    first.remove()
    handle.armed = True
    run.resume()
    wait_until(lambda: len(pauses(run)) == 2)
    assert pauses(run)[1]["rule"] == "nonfinite_loss"
    go_on(run, lambda: not background.running)


def test_a_rule_that_was_not_asked_for_does_not_hold_it(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(alert="dead_units")
    logging(run, model, [1.0, math.nan, 1.0]).wait(PATIENCE_S)
    assert run.alerts.of("nonfinite_loss")
    assert pauses(run) == []


def test_nan_in_a_loss_holds_it_once_until_a_row_is_finite(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(nan=True)
    background = logging(run, model, [1, math.nan, math.inf, 1, math.inf, 1])
    assert held_at(run) == 2
    assert run.status().pause_reason == "paused at step 1: loss is NaN"
    run.resume()
    wait_until(lambda: len(pauses(run)) == 2)
    assert [(one["step"], one["value"]) for one in pauses(run)] == [(1, "nan"), (4, "inf")]
    go_on(run, lambda: not background.running)


@pytest.mark.parametrize(
    "quantity", ["output_norm", "nonfinite_fraction", "grad_norm", "output_grad_norm"]
)
def test_nan_in_an_output_or_gradient_holds_it(
    quantity: str, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": [quantity]})
    run.pause_when(nan=True)
    optimizer = sgd(model)

    def loop() -> None:
        for step in range(4):
            inputs = batch(step)
            if step == 2:
                inputs[0, 0] = math.nan
            train_step(model, optimizer, inputs)

    background = run.train_in_background(loop)
    assert held_at(run) == 3
    (told,) = pauses(run)
    assert (told["module"], told["quantity"], told["step"]) == ("0", quantity, 2)
    go_on(run, lambda: not background.running)


def test_a_standard_deviation_of_one_number_is_no_nan_of_the_training(watch: Watch) -> None:
    model = nn.Linear(4, 1)
    run = watch(model, probes={"": ["output_std"]})
    run.pause_when(nan=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    run.boundary()
    assert pauses(run) == []


def test_before_the_update_it_is_held_with_the_weights_as_they_were(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["grad_norm", "weight_norm"]})
    run.pause_when("0", "grad_norm", "> 1e3", before="update")
    optimizer, states = sgd(model), []

    def loop() -> None:
        for step in range(4):
            states.append(model[0].weight.detach().clone())  # type: ignore[index]
            optimizer.zero_grad()
            (model(batch(step)).square().sum() * (1e6 if step == 2 else 1e-6)).backward()
            optimizer.step()

    background = run.train_in_background(loop)
    assert held_at(run) == 2
    assert run.status().pause_reason.startswith("paused at step 2: 0 · grad_norm ")
    assert (
        run.status().pause_reason.endswith("> 1e+03, before the update")
        or "1000" in run.status().pause_reason
    )
    assert torch.equal(model[0].weight, states[2])  # type: ignore[index]
    ticket = run.controls.put(Attach(("2",), "output_norm"))
    run.controls.put(Control("step"))
    wait_until(lambda: run.status().state == "paused" and run.status().step == 3)
    wait_until(lambda: ticket.state == "applied")
    assert ticket.applied_step == 3, "what changes probes waits for the end of the step"
    assert not torch.equal(model[0].weight, states[2])  # type: ignore[index]
    go_on(run, lambda: not background.running)
    assert run.data.step.values.tolist() == [0, 1, 2, 3]


def test_stop_before_an_update_leaves_the_weights(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["grad_norm"]})
    run.pause_when(nan=True, before="update")
    optimizer, states = sgd(model), []

    def loop() -> None:
        for step in range(4):
            states.append(model[0].weight.detach().clone())  # type: ignore[index]
            optimizer.zero_grad()
            (model(batch(step)).sum() * (math.nan if step == 1 else 1.0)).backward()
            optimizer.step()

    background = run.train_in_background(loop)
    assert held_at(run) == 1
    run.controls.put(Control("stop"))
    background.wait(PATIENCE_S)
    assert background.stopped
    assert torch.equal(model[0].weight, states[1])  # type: ignore[index]


def test_weights_are_the_same_with_breakpoints_that_are_not_met(watch: Watch) -> None:
    weights = []
    for armed in (False, True):
        model = made(mlp)
        run = watch(model)
        if armed:
            run.pause_when("0", "grad_norm", "> 1e9")
            run.pause_when(nan=True, before="update")
            run.pause_when(alert="severe")
        logging(run, model, [1.0] * 5).wait(PATIENCE_S)
        weights.append([value.detach().clone() for value in model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))


@pytest.mark.parametrize(("name", "holds"), [("grad_norm", False), ("logged_grad_norm", True)])
def test_of_a_measured_and_a_logged_series_the_one_of_that_name_is_asked(
    watch: Watch, model: nn.Module, name: str, holds: bool
) -> None:
    run = watch(model, probes=None)
    run.attach("", "grad_norm")
    run.pause_when("", name, "> 1e6")
    optimizer = sgd(model)

    def loop() -> None:
        for step in range(4):
            run.boundary()
            train_step(model, optimizer, batch(step))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nbp.ReplacedWarning)
                run.log(grad_norm=1e7)
        run.boundary()

    background = run.train_in_background(loop)
    if holds:
        held_at(run)
        assert f"{name} 1e+07 > 1e+06" in run.status().pause_reason
        run.resume()
    wait_until(lambda: not background.running)
    assert len(pauses(run)) == holds
    assert [*run.would_pause("", name, "> 1e6")] == ([0] if holds else [])


def test_a_logged_nan_is_reported_under_the_name_by_which_it_is_read(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.attach("", "grad_norm")
    run.pause_when(nan=True)
    optimizer = sgd(model)

    def loop() -> None:
        for step in range(3):
            run.boundary()
            train_step(model, optimizer, batch(step))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nbp.ReplacedWarning)
                run.log(grad_norm=math.nan if step else 1.0)
        run.boundary()

    background = run.train_in_background(loop)
    held_at(run)
    assert "logged_grad_norm is NaN" in run.status().pause_reason
    run.resume()
    wait_until(lambda: not background.running)
