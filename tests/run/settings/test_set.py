"""Setting options of the optimizers while it trains: when it acts, on which, and what is said."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import LBFGS, SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError, SettingError, UnknownNameError
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.figures import lines
from notebook_probe.run.attach.requests import Control, Set
from tests.models import floats, loss_of, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.loops import applied, held_at, training, wait_until
from tests.run.settings.schedules import Seen

batch = floats(5, 4)
RATE: dict[str, Any] = {"": ["lr"]}


def sets_of(run: nbp.Run) -> list[tuple[int, dict[str, Any]]]:
    """Step and detail of each change."""
    return [(one.step, json.loads(one.detail)) for one in run.events if one.kind == "set"]


def change(name: str, before: Any, to: float, group: int | None = None) -> dict[str, Any]:
    return {"name": name, "group": group, "from": before, "to": to}


def test_it_acts_at_once_while_no_step_is_open_else_from_the_next_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=RATE)
    assert run.set("lr", 0.2).state == "applied"
    assert optimizer.param_groups[0]["lr"] == 0.2
    train_step(model, optimizer, batch(0))
    ticket = run.set("lr", 0.3)
    assert (ticket.state, optimizer.param_groups[0]["lr"]) == ("queued", 0.2)
    train(model, optimizer, batch, range(1, 3))
    assert (ticket.state, ticket.applied_step, ticket.text) == ("applied", 1, "lr 0.2 → 0.3")
    np.testing.assert_array_equal(run.series("", "lr"), np.array([0.2, 0.3, 0.3], np.float32))
    assert sets_of(run) == [(0, change("lr", 0.1, 0.2)), (1, change("lr", 0.2, 0.3))]
    assert optimizer.state_dict()["param_groups"][0]["lr"] == 0.3


def test_the_weights_are_those_of_a_loop_that_writes_it_itself(watch: Watch) -> None:
    model, twin = made(mlp), made(mlp)
    optimizer, alone = AdamW(model.parameters(), lr=0.1), AdamW(twin.parameters(), lr=0.1)
    run = watch(model)
    for step in range(8):
        if step == 3:
            run.set("lr", 0.01)
            run.set("weight_decay", 0.5)
            alone.param_groups[0].update(lr=0.01, weight_decay=0.5)
        train_step(model, optimizer, batch(step))
        train_step(twin, alone, batch(step))
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, other)


def test_another_thread_sets_it_for_a_step_to_come(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=RATE)
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 3)
        tickets = [run.set("lr", rate) for rate in (0.01, 0.02)]
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(run.set("lr", 0.03)))
        thread.start()
        thread.join()
        wait_until(lambda: all(one.state == "applied" for one in (*tickets, *others)))
        last = others[0].applied_step
        wait_until(lambda: run.status().step > last + 2)
    rates = run.series("", "lr").values
    assert (rates[last:] == np.float32(0.03)).all()
    first = tickets[0].applied_step
    assert (rates[:first] == np.float32(0.1)).all(), "nothing before"
    assert [detail["to"] for _, detail in sets_of(run)] == [0.01, 0.02, 0.03]


def test_while_it_is_paused_it_acts_at_the_gate(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=RATE)
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 2)
        run.controls.put(Control("pause"))
        step = held_at(run)
        ticket = applied(run, Set("lr", 0.02))
        assert (ticket.state, ticket.applied_step) == ("applied", step)
        assert [knob.value for knob in run.knobs() if knob.name == "lr"] == [0.02]
        assert held_at(run) == step, "no step was taken for it"
        applied(run, Control("resume"))
        wait_until(lambda: run.status().step > step + 1)
    assert run.series("", "lr").sel(step=step) == np.float32(0.02)
    assert run.series("", "lr").sel(step=step - 1) == np.float32(0.1)


def test_all_groups_of_every_optimizer_that_steps_the_model(watch: Watch) -> None:
    model = made(mlp)
    first, last = (model.get_submodule(name) for name in ("0", "2"))
    groups = [
        {"params": [value], "lr": 0.1 * (1 + i)} for i, value in enumerate(first.parameters())
    ]
    optimizers: list[Optimizer] = [SGD(groups), Adam(last.parameters(), lr=0.3)]
    run = watch(model, probes=None)

    def step(k: int) -> None:
        loss_of(model(batch(k))).backward()
        for optimizer in optimizers:
            optimizer.step()

    def rates() -> list[float]:
        return [group["lr"] for one in optimizers for group in one.param_groups]

    step(0)
    run.set("lr", 0.05, group=2)
    run.set("lr", 0.01, group=0)
    step(1)
    assert rates() == [0.01, 0.2, 0.05]
    assert run.knobs()[0].groups == (0.01, 0.2, 0.05)
    assert np.isnan(run.knobs()[0].value), "they differ"
    run.set("lr", 0.5)
    step(2)
    assert rates() == [0.5, 0.5, 0.5]
    assert sets_of(run) == [
        (1, change("lr", 0.3, 0.05, group=2)),
        (1, change("lr", 0.1, 0.01, group=0)),
        (2, change("lr", [0.01, 0.2, 0.05], 0.5)),
    ]


def test_each_model_of_a_gan_has_its_own(tmp_path: Path) -> None:
    makes, judges = made(mlp), nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizers = [Seen(makes.parameters(), 0.1), Seen(judges.parameters(), 0.2)]
    with (
        nbp.watch(makes, store=tmp_path / "g", probes=RATE) as of_g,
        nbp.watch(judges, store=tmp_path / "d", probes=RATE) as of_d,
    ):
        for step in range(4):
            if step == 2:
                of_g.set("lr", 0.01)
                of_d.set("lr", 0.02)
            optimizers[1].zero_grad()
            loss_of(judges(makes(batch(step)).detach())).backward()
            optimizers[1].step()
            optimizers[0].zero_grad()
            loss_of(judges(makes(batch(step)))).backward()
            optimizers[0].step()
        assert optimizers[0].rates == [0.1, 0.1, 0.01, 0.01]
        late = [0.2, 0.2, 0.2, 0.02]  # its step began when the other was trained through it
        assert optimizers[1].rates == late
        assert (sets_of(of_g)[0][0], sets_of(of_d)[0][0]) == (2, 3)
        for run, expected in ((of_g, [0.1, 0.1, 0.01, 0.01]), (of_d, late)):
            np.testing.assert_array_equal(run.series("", "lr")[:4], np.array(expected, np.float32))


def closure_of(model: nn.Module, optimizer: Optimizer) -> Callable[[], Any]:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(batch(0)))
        loss.backward()
        return loss

    return closure


def test_an_optimizer_with_a_closure_uses_it_like_one_whose_loop_writes_it(watch: Watch) -> None:
    model, twin = made(mlp), made(mlp)
    optimizer, alone = (LBFGS(one.parameters(), lr=0.5, max_iter=3) for one in (model, twin))
    run = watch(model, probes=RATE)
    for step in range(4):
        if step == 2:
            run.set("lr", 0.1)
            alone.param_groups[0]["lr"] = 0.1
        optimizer.step(closure_of(model, optimizer))
        alone.step(closure_of(twin, alone))
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, other)
    np.testing.assert_array_equal(run.series("", "lr"), np.array([0.5, 0.5, 0.1, 0.1], np.float32))
    assert sets_of(run) == [(2, change("lr", 0.5, 0.1))]


@pytest.mark.parametrize("scheduled", [False, True])
def test_within_a_closure_it_is_used_from_the_next_step_on(scheduled: bool, watch: Watch) -> None:
    model = made(mlp)
    before, inside = (model.get_submodule(name) for name in ("0", "2"))
    optimizer = Seen(before.parameters(), 0.5)
    with_closure = LBFGS(inside.parameters(), lr=0.5, max_iter=3)
    if scheduled:
        torch.optim.lr_scheduler.StepLR(with_closure, 100)
    used: list[float] = []
    closure = closure_of(model, with_closure)

    def looking() -> Any:
        used.append(with_closure.param_groups[0]["lr"])
        return closure()

    run = watch(model, probes={"2": ["lr"]})
    tickets = []
    for step in range(3):
        train_step(model, optimizer, batch(step))
        if step == 1:
            tickets = [run.set("lr", rate) for rate in (0.3, 0.1)]
        with_closure.step(looking)  # whose first forward begins the next step
    values = [knob.groups for knob in run.knobs() if knob.name == "lr"]
    assert values == [(0.1, 0.1)]
    assert {*used[: 2 * len(used) // 3]} == {0.5}
    assert {*used[2 * len(used) // 3 :]} == {0.1}
    acted = tickets[0].applied_step + 1
    assert tickets[0].text.endswith(f"from step {acted} on")
    assert [step for step, _ in sets_of(run)] == [acted, acted]
    series = run.series("2", "lr").dropna("step")
    expected = np.where(series.step < acted, np.float32(0.5), np.float32(0.1))
    np.testing.assert_array_equal(series, expected)


def test_what_was_set_outlives_the_run_and_is_seen_by_the_next(tmp_path: Path) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters())
    torch.optim.lr_scheduler.StepLR(optimizer, 100)
    run = nbp.watch(model, optimizer, store=tmp_path, probes=RATE)
    train(model, optimizer, batch, range(2))
    run.set("lr", 0.5)
    train(model, optimizer, batch, range(1))
    run.close()
    train(model, optimizer, batch, range(1))
    with nbp.watch(model, optimizer, store=tmp_path, resume=True, probes=RATE) as again:
        assert again.knobs()[0].value == 0.5
        train(model, optimizer, batch, range(1))
        again.set("lr", 0.2)
        train(model, optimizer, batch, range(1))
        assert sets_of(again) == [(2, change("lr", 0.1, 0.5)), (4, change("lr", 0.5, 0.2))]
        np.testing.assert_array_equal(
            again.series("", "lr"), np.array([0.1, 0.1, 0.5, 0.5, 0.2], np.float32)
        )
    assert optimizer.rates == [0.1, 0.1, 0.5, 0.5, 0.5, 0.2]


def test_a_rate_that_is_no_number_any_more_can_be_set(watch: Watch, model: nn.Module) -> None:
    optimizer = sgd(model)
    run = watch(model, optimizer)
    optimizer.param_groups[0]["lr"] = float("inf")
    run.set("lr", 0.2)
    assert optimizer.param_groups[0]["lr"] == 0.2
    assert sets_of(run) == [(0, change("lr", None, 0.2))]


def test_a_closed_run_sets_nothing(watch: Watch, model: nn.Module) -> None:
    optimizer = sgd(model)
    run = watch(model, optimizer)
    run.close()
    with pytest.raises(ClosedRunError):
        run.set("lr", 0.2)
    ticket = run.controls.put(Set("lr", 0.2))
    assert (ticket.state, ticket.text) == ("refused", "the run is closed")
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_what_is_so_already_is_no_change(watch: Watch, model: nn.Module) -> None:
    optimizer = sgd(model)
    run = watch(model, optimizer)
    assert run.set("lr", 0.1).text == "lr is 0.1 already"
    assert sets_of(run) == []


def test_each_change_is_a_mark_on_every_line(watch: Watch, model: nn.Module) -> None:
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=RATE)
    train(model, optimizer, batch, range(3))
    before = marks_in_figure(run)
    run.set("lr", 0.2)
    train(model, optimizer, batch, range(3))
    assert marks_in_figure(run) == [*before, 3]
    selection = PanelSelection().with_series((".", "lr"))
    frame, _ = Lines().frame(run, selection, 700)
    assert [one for one in frame["events"] if one[1] == "set"] == [(3, "set", "lr 0.1 → 0.2")]


def marks_in_figure(run: nbp.Run) -> list[float]:
    (axes,) = lines(run, [("", "lr")]).axes
    ticks = [line for line in axes.lines if line.get_marker() == "|"]
    return [float(x) for line in ticks for x in np.asarray(line.get_xdata())]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "name": ({"name": "lrr", "value": 1}, UnknownNameError, "close: 'lr'"),
    "no text": ({"name": ["lr"], "value": 1}, UnknownNameError, "set(['lr']): nothing is set by"),
    "betas": ({"name": "betas", "value": 0.9}, UnknownNameError, "set('betas'): nothing is set by"),
    "nan": ({"name": "lr", "value": float("nan")}, SettingError, "lr=nan; a finite number"),
    "inf": ({"name": "lr", "value": float("inf")}, SettingError, "lr=inf; a finite number"),
    "text": ({"name": "lr", "value": "0.1"}, SettingError, "lr='0.1'; one number is expected"),
    "bool": ({"name": "lr", "value": True}, SettingError, "lr=True; one number is expected"),
    "none": ({"name": "lr", "value": None}, SettingError, "lr=None; one number is expected"),
    "several": ({"name": "lr", "value": torch.ones(2)}, SettingError, "one number is expected"),
    "negative": ({"name": "lr", "value": -1}, SettingError, "lr=-1; a number from 0 is allowed"),
    "group": (
        {"name": "lr", "value": 1, "group": 2},
        SettingError,
        "group=2: the optimizers have groups 0 to 1",
    ),
    "group of text": ({"name": "lr", "value": 1, "group": "0"}, SettingError, "group='0'"),
    "not in every group": (
        {"name": "momentum", "value": 0.5},
        SettingError,
        "group 1 (Adam) has none; group 0 has",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_set_is_refused_by_name_and_by_request(
    case: tuple[dict[str, Any], type[Exception], str], watch: Watch
) -> None:
    asked, error, text = case
    model = made(mlp)
    run = watch(model)
    optimizers = [
        SGD(model.get_submodule("0").parameters(), lr=0.1, momentum=0.0),
        Adam(model.get_submodule("2").parameters(), lr=0.1),
    ]
    loss_of(model(batch(0))).backward()
    for optimizer in optimizers:
        optimizer.step()
    group = asked.get("group")
    with pytest.raises(error, match=re.escape(text)):
        run.set(asked["name"], asked["value"], group=group)
    ticket = run.controls.put(Set(asked["name"], asked["value"], group))
    loss_of(model(batch(1)))
    assert ticket.state == "refused"
    assert text in ticket.text
    assert [one.param_groups[0]["lr"] for one in optimizers] == [0.1, 0.1]
    assert sets_of(run) == []


def test_before_an_optimizer_is_known_it_says_so(watch: Watch, model: nn.Module) -> None:
    run = watch(model)
    assert run.knobs() == []
    with pytest.raises(SettingError, match="no optimizer of this model has stepped yet"):
        run.set("lr", 0.1)
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    assert run.set("lr", 0.2).state == "queued"


@pytest.mark.parametrize(
    "value", [np.float32(0.5), np.float64(0.5), torch.tensor(0.5), np.array([0.5])]
)
def test_a_number_of_any_library_is_one(value: Any, watch: Watch, model: nn.Module) -> None:
    optimizer = sgd(model)
    watch(model, optimizer).set("lr", value)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert type(optimizer.param_groups[0]["lr"]) is float


def test_options_that_can_be_set_are_listed_with_what_they_are(
    watch: Watch, model: nn.Module
) -> None:
    optimizer = AdamW(model.parameters(), lr=0.1, weight_decay=0.02)
    knobs = {knob.name: knob for knob in watch(model, optimizer).knobs()}
    assert [*knobs] == ["lr", "eps", "weight_decay"]
    assert (knobs["lr"].value, knobs["weight_decay"].value) == (0.1, 0.02)
    assert (knobs["lr"].low, knobs["lr"].high, knobs["lr"].log) == (0.0, None, True)


def test_counts_and_flags_are_no_settings(watch: Watch, model: nn.Module) -> None:
    optimizer = LBFGS(model.parameters())
    assert {"max_iter", "history_size", "line_search_fn"} <= {*optimizer.param_groups[0]}
    names = [knob.name for knob in watch(model, optimizer).knobs()]
    assert names == ["lr", "tolerance_grad", "tolerance_change"]
