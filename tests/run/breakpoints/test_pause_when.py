"""Training held by a step, a series, an alert, NaN and an exception, and let go on."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import BreakpointError, QuantityError, TrainingStopped, UnknownNameError
from notebook_probe.run.attach.requests import Attach, Control
from notebook_probe.run.background import Background
from notebook_probe.run.breakpoints import check
from notebook_probe.run.breakpoints.conditions import AtStep
from notebook_probe.run.breakpoints.requests import Break, EditBreak, Unbreak
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S, applied, held_at, training, wait_until

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


def test_it_is_held_before_the_step_that_was_asked_for(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    handle = run.pause_when(step=3)
    background = logging(run, model, [0.0] * 6)
    assert held_at(run) == 3
    assert run.status().held == "paused at step 3"
    assert "paused at step 3" in repr(run.status())
    assert run.data.step.values.tolist() == [0, 1, 2]
    assert repr(run.breakpoints) == "[<Breakpoint at step 3: armed, held at step 3>]"
    assert handle.last_step == 3
    go_on(run, lambda: not background.running)
    assert run.status().held == ""
    (told,) = pauses(run)
    assert (told["condition"], told["step"], told["threshold"]) == ("at step 3", 3, 3)


def test_a_series_holds_it_after_the_row_that_meets_the_condition_and_says_so(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes={"0": ["output_norm"]})
    run.pause_when("", "loss", "> 10")
    background = logging(run, model, [1, 2, 12.5, 13, 2, 11])
    assert held_at(run) == 3
    assert run.status().held == "paused at step 2: loss 12.5 > 10"
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
    assert run.status().held == "paused at step 1: loss 7 > 5 … and 1 more"
    assert [info.holds for info in run.breakpoint_infos()] == [True, True]
    go_on(run, lambda: not background.running)
    assert [info.holds for info in run.breakpoint_infos()] == [False, False]


def test_an_alert_holds_it_at_the_step_after_its_row(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(alert="severe")
    background = logging(run, model, [1.0, 1.0, math.nan, 1.0])
    assert held_at(run) == 3
    assert run.status().held == "paused at step 2: nonfinite_loss at the model: the loss is nan"
    (told,) = pauses(run)
    assert (told["rule"], told["quantity"], told["step"]) == ("nonfinite_loss", "loss", 2)
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
    assert run.status().held == "paused at step 1: loss is nan"
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
    assert run.status().held.startswith("paused at step 2: 0 · grad_norm ")
    assert run.status().held.endswith("> 1e+03, before the update") or "1000" in run.status().held
    assert torch.equal(model[0].weight, states[2])  # type: ignore[index]
    ticket = run.put(Attach(("2",), "output_norm"))
    run.put(Control("step"))
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
    run.put(Control("stop"))
    background.wait(PATIENCE_S)
    assert background.stopped
    assert torch.equal(model[0].weight, states[1])  # type: ignore[index]


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
    assert "FloatingPointError: three is too many" in run.status().held
    assert background.running
    run.put(Control(let_go))
    with pytest.raises(FloatingPointError, match="three is too many"):
        background.wait(PATIENCE_S)
    head = run.status_head()
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
    assert "ZeroDivisionError" in run.status_head().traceback


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
    seen.append(run.status().held)
    run.resume()
    background.join(PATIENCE_S)
    assert "ZeroDivisionError" in seen[0]
    assert run.closed


def test_on_the_main_thread_without_anybody_it_goes_on_and_says_so(
    watch: Watch,
    model: nn.Module,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "how_to_go_on", str)  # whatever else this process has done
    run = watch(model, probes=None)
    run.pause_when(step=1)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    assert "not paused at step 1: nobody could let it go on" in capsys.readouterr().out
    (event,) = [event for event in run.events if event.kind == "pause"]
    assert event.text.startswith("not paused")


def test_without_a_panel_a_line_says_how_to_go_on(
    watch: Watch, model: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    run = watch(model, probes=None)
    run.pause_when(step=1)
    with training(run, model):
        held_at(run)
        assert "paused at step 1; run.resume() goes on" in capsys.readouterr().out


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
    assert run.status().held.endswith("loss 9 > 8")
    go_on(run, lambda: not background.running)
    kinds = [json.loads(e.detail)["what"] for e in run.events if e.kind == "breakpoint"]
    assert kinds == ["added", "added", "removed", "armed", "changed", "armed"]


def test_a_panel_does_the_same_by_requests(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    with training(run, model):
        ticket = applied(run, Break(AtStep(10**6)))
        assert ticket.text == "pauses when: at step 1000000"
        (info,) = run.breakpoint_infos()
        assert applied(run, EditBreak(info.id, False, 10**7)).state == "applied"
        (info,) = run.breakpoint_infos()
        assert (info.armed, info.condition.number) == (False, 10**7)
        refused = applied(run, EditBreak(info.id, None, 0.5))
        assert (refused.state, refused.text) == (
            "refused",
            "step=0.5; a whole number from 0 is expected",
        )
        applied(run, Unbreak(info.id))
        assert run.breakpoint_infos() == []
        assert applied(run, Unbreak(info.id)).state == "refused"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((), BreakpointError, "0 conditions"),
        (("0", "grad_norm"), BreakpointError, "a series is all three"),
        (("0", "grad_norm", "10"), BreakpointError, "such as '> 10'"),
        (("0", "grad_norm", "over 10"), BreakpointError, "no comparison 'over'"),
        (("0", "grad_norm", "> nan"), BreakpointError, "a finite number"),
        (("9", "grad_norm", "> 1"), UnknownNameError, "no module '9'"),
        (("0", "output_histogram", "> 1"), QuantityError, "is a vector"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    given: tuple[Any, ...], error: Any, says: str, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    with pytest.raises(error, match=says):
        run.pause_when(*given)
    assert run.breakpoints == []


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"step": -1}, BreakpointError, "whole number"),
        ({"step": 1, "nan": True}, BreakpointError, "2 conditions"),
        ({"alert": "dead_unit"}, UnknownNameError, "dead_units"),
        ({"step": 1, "before": "update"}, BreakpointError, "can hold before"),
    ],
)
def test_what_options_cannot_be_is_refused_in_words(
    given: dict[str, Any], error: Any, says: str, watch: Watch, model: nn.Module
) -> None:
    with pytest.raises(error, match=says):
        watch(model, probes=None).pause_when(**given)


def test_what_is_known_after_the_update_cannot_hold_before_it(
    watch: Watch, model: nn.Module
) -> None:
    with pytest.raises(BreakpointError, match="known after the update"):
        watch(model).pause_when("0", "update_ratio", "> 1", before="update")


def test_a_step_that_has_passed_is_refused(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    with pytest.raises(BreakpointError, match="step 1 has passed; the next one is 3"):
        run.pause_when(step=1)


def test_a_rank_but_the_first_leaves_it_to_that(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, rank=1)
    handle = run.pause_when(step=1)
    assert handle.note == "acts on rank 0, which the others wait for"
    logging(run, model, [0.0] * 3).wait(PATIENCE_S)
    assert pauses(run) == []


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


def test_stop_ends_a_training_that_a_breakpoint_holds(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.pause_when(step=2)
    with training(run, model) as loop:
        assert held_at(run) == 2
    assert loop.background.stopped
    assert isinstance(loop.background.error, TrainingStopped | type(None))
