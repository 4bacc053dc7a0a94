"""A learning rate that is set while a scheduler moves it: a factor of the schedule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim import SGD, Optimizer, lr_scheduler

import notebook_probe as nbp
from notebook_probe.probes.step.live_options import GroupOption, live_options
from tests.models import floats, loss_of, made, mlp, train_step
from tests.run.conftest import Watch
from tests.run.settings.schedules import SCHEDULES, Schedule, Seen, expected_rates, plain_rates

batch = floats(5, 4)
N_STEPS = 12
PROBES: dict[str, Any] = {"": ["lr"]}


def trained(
    run: nbp.Run, model: nn.Module, optimizer: Seen, scheduler: Any, sets: dict[int, float]
) -> None:
    """Steps of model, optimizer and scheduler; each of ``sets`` before its step begins."""
    for step in range(N_STEPS):
        if step in sets:
            run.set("lr", sets[step])
        train_step(model, optimizer, batch(step))
        scheduler.step()


@pytest.mark.parametrize("of_tensor", [False, True], ids=["float", "tensor"])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_every_later_step_is_done_with_the_schedule_times_the_factor(
    schedule: Schedule, of_tensor: bool, watch: Watch
) -> None:
    lr, same = (torch.tensor(0.1), torch.tensor(0.1)) if of_tensor else (0.1, 0.1)
    model, sets = made(mlp), {3: 0.5, 7: 0.003}
    optimizer = Seen(model.parameters(), lr, momentum=0.9)
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=PROBES)
    given_rates = [group["lr"] for group in optimizer.param_groups]
    trained(run, model, optimizer, scheduler, sets)
    expected = expected_rates(plain_rates(schedule, N_STEPS, same), sets)
    np.testing.assert_allclose(optimizer.rates, expected, rtol=1e-6)
    np.testing.assert_allclose(run.series("", "lr"), expected, rtol=1e-6)
    assert optimizer.rates[3] == pytest.approx(0.5, rel=1e-7)
    if of_tensor:
        assert all(
            group["lr"] is rate
            for group, rate in zip(optimizer.param_groups, given_rates, strict=True)
        ), "a captured step reads the tensor that it knows"


@pytest.mark.slow
@given(data=st.data())
def test_whatever_is_set_whenever_only_the_last_factor_counts(data: st.DataObject) -> None:
    schedule = SCHEDULES[data.draw(st.sampled_from(sorted(SCHEDULES)))]
    sets = data.draw(st.dictionaries(st.integers(0, N_STEPS - 1), st.floats(1e-6, 10), max_size=5))
    value = torch.zeros(1, requires_grad=True)
    optimizer = Seen([value], momentum=0.9)
    scheduler = schedule(optimizer)
    for step in range(N_STEPS):
        if step in sets:
            live_options(optimizer).set(optimizer, GroupOption(0, "lr"), sets[step])
        optimizer.step()  # nobody watches it
        scheduler.step()
    expected = expected_rates(plain_rates(schedule, N_STEPS), sets)
    np.testing.assert_allclose(optimizer.rates, expected, rtol=1e-9)


def test_between_the_steps_optimizer_and_scheduler_hold_the_schedule(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["cosine"]
    optimizer = Seen(model.parameters(), momentum=0.9)
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    trained(run, model, optimizer, scheduler, {2: 7.0})
    twin = Seen([torch.zeros(1, requires_grad=True)], momentum=0.9)
    alone = schedule(twin)
    for _ in range(N_STEPS):
        twin.step()
        alone.step()
    of_groups = [dict(one.state_dict()["param_groups"][0]) for one in (optimizer, twin)]
    assert {**of_groups[0], "params": None} == {**of_groups[1], "params": None}
    assert scheduler.get_last_lr() == alone.get_last_lr()
    assert str(scheduler.state_dict()) == str(alone.state_dict())


def test_resumed_from_its_states_and_the_factors_it_goes_on_bit_for_bit(
    watch: Watch, tmp_path: Path
) -> None:
    schedule, sets = SCHEDULES["cosine"], {3: 0.123}
    model = made(mlp)
    optimizer = Seen(model.parameters(), momentum=0.9)
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    for step in range(N_STEPS):
        if step in sets:
            run.set("lr", sets[step])
        if step == 6:
            kept = [one.state_dict() for one in (model, optimizer, scheduler)]
            torch.save([*kept, live_options(optimizer).state()], tmp_path / "kept.pt")
        train_step(model, optimizer, batch(step))
        scheduler.step()
    again = made(mlp, seed=2)
    later = Seen(again.parameters(), momentum=0.9)
    then = schedule(later)
    states = torch.load(tmp_path / "kept.pt", weights_only=True)
    for one, state in zip((again, later, then), states, strict=False):
        one.load_state_dict(state)
    live_options(later).load_state(states[-1])
    for step in range(6, N_STEPS):
        train_step(again, later, batch(step))
        then.step()
    assert later.rates == optimizer.rates[6:]
    assert all(
        torch.equal(one, other)
        for one, other in zip(model.parameters(), again.parameters(), strict=True)
    )


def test_a_plateau_reduces_what_was_set(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters())
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    twin = Seen([torch.zeros(1, requires_grad=True)])
    alone = lr_scheduler.ReduceLROnPlateau(twin, factor=0.5, patience=1)
    run = watch(model, optimizer, probes=None)
    sets = {2: 0.4, 7: 0.03}
    for step in range(N_STEPS):
        if step in sets:
            run.set("lr", sets[step])
        train_step(model, optimizer, batch(step))
        scheduler.step(1.0)
        twin.step()
        alone.step(1.0)
    assert len({*twin.rates}) > 3, "it reduces often"
    np.testing.assert_allclose(optimizer.rates, expected_rates(twin.rates, sets), rtol=1e-9)


def test_a_loop_that_writes_the_rate_itself_is_a_schedule_too(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters())
    run = watch(model, probes=None)
    scheduled, sets = [0.1 * 0.9**step for step in range(N_STEPS)], {4: 0.5}
    for step, rate in enumerate(scheduled):
        optimizer.param_groups[0]["lr"] = rate
        if step in sets:
            run.set("lr", sets[step])
        train_step(model, optimizer, batch(step))
    np.testing.assert_allclose(optimizer.rates, expected_rates(scheduled, sets), rtol=1e-9)


def rate_behind_the_update(update: torch.Tensor, group_lr: torch.Tensor) -> Any:
    """Learning rate, read once the optimizer has stepped."""
    return group_lr + 0.0 * update.abs().amax()


def test_a_scheduler_in_a_hook_of_the_optimizer_sees_its_schedule_alone(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["exponential"]
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = schedule(optimizer)
    optimizer.register_step_post_hook(lambda *_: scheduler.step())
    run = watch(model, optimizer, probes={**PROBES, "0": [rate_behind_the_update]})
    sets = {3: 0.5}
    for step in range(N_STEPS):
        if step in sets:
            run.set("lr", sets[step])
        train_step(model, optimizer, batch(step))
    scheduled = plain_rates(schedule, N_STEPS + 1)
    expected = expected_rates(scheduled, sets)[:-1]
    np.testing.assert_allclose(run.series("", "lr"), expected, rtol=1e-6)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(scheduled[-1], rel=1e-9)
    factors = np.array(expected) / scheduled[:-1]
    behind = [rate * factor for rate, factor in zip(scheduled[1:], factors, strict=True)]
    read = run.series("0", "rate_behind_the_update")
    np.testing.assert_allclose(read, behind, rtol=1e-6)  # by then the scheduler has stepped


def test_momentum_that_is_cycled_is_set_as_a_factor(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["one_cycle"]
    optimizer = Seen(model.parameters(), momentum=0.9)
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    for step in range(6):
        if step == 3:
            run.set("momentum", 0.1)
        train_step(model, optimizer, batch(step))
        scheduler.step()
    twin = Seen([torch.zeros(1, requires_grad=True)], momentum=0.9)
    alone = schedule(twin)
    for _ in range(6):
        twin.step()
        alone.step()
    factor = 0.1 / twin.momenta[3]
    expected = [*twin.momenta[:3], *(one * factor for one in twin.momenta[3:])]
    np.testing.assert_allclose(optimizer.momenta, expected, rtol=1e-9)


def test_a_schedule_that_is_at_zero_has_no_factor(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters())
    scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: step / 10)
    run = watch(model, optimizer, probes=None)
    with pytest.raises(nbp.SettingError, match=r"lr=0\.5: the schedule of group 0 is at 0 now"):
        run.set("lr", 0.5)
    train_step(model, optimizer, batch(0))
    scheduler.step()
    run.set("lr", 0.5)
    for step in range(1, 3):
        train_step(model, optimizer, batch(step))
        scheduler.step()
    np.testing.assert_allclose(optimizer.rates, [0.0, 0.5, 1.0])


def test_the_scheduled_rate_set_again_ends_the_factor(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["exponential"]
    optimizer = Seen(model.parameters())
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    for step in range(6):
        if step == 2:
            run.set("lr", 0.5)
        if step == 4:
            run.set("lr", optimizer.param_groups[0]["lr"])
        train_step(model, optimizer, batch(step))
        scheduler.step()
    assert optimizer.rates[4:] == plain_rates(schedule, 6)[4:]
    assert live_options(optimizer).state() == []


def test_the_event_says_what_the_factor_is(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["step"]
    optimizer = Seen(model.parameters())
    schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    ticket = run.set("lr", 0.05)
    (event,) = [event for event in run.events if event.kind == "set"]
    assert event.text == ticket.text == "lr 0.1 → 0.05, 0.5 of the scheduled value"
    assert json.loads(event.detail) == {"name": "lr", "group": None, "from": 0.1, "to": 0.05}


def test_a_step_that_raises_leaves_the_schedule_in_the_groups(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["lambda"]
    optimizer = Seen(model.parameters())
    scheduler = schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    run.set("lr", 0.5)

    def interrupted() -> float:
        loss_of(model(batch(0)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(interrupted)
    scheduler.step()
    for step in range(4):
        train_step(model, optimizer, batch(step))
        scheduler.step()
    assert optimizer.rates[0] == 0.5, "that of the step that raised"
    later = plain_rates(schedule, 5)[1:]
    np.testing.assert_allclose(optimizer.rates[1:], [5 * rate for rate in later], rtol=1e-9)


def test_what_is_written_while_the_optimizer_steps_is_the_new_schedule(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["lambda"]
    optimizer = Seen(model.parameters())
    schedule(optimizer)
    run = watch(model, optimizer, probes=None)
    run.set("lr", 0.5)

    def closure() -> Any:
        optimizer.param_groups[0]["lr"] = 0.2
        loss = loss_of(model(batch(0)))
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.param_groups[0]["lr"] == 0.2
    train_step(model, optimizer, batch(1))
    assert optimizer.rates[-1] == pytest.approx(5 * 0.2)


class Round(SGD):
    """Steps another optimizer, whose groups are its own."""

    def __init__(self, inner: Seen) -> None:
        super().__init__(inner.param_groups[0]["params"])
        self.param_groups, self.inner = inner.param_groups, inner

    def step(self, closure: Any = None) -> Any:
        return self.inner.step(closure)


def test_a_factor_acts_once_where_two_optimizers_share_their_groups(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["exponential"]
    inner = Seen(model.parameters())
    scheduler, outer = schedule(inner), Round(inner)
    run = watch(model, outer, probes=None)
    sets = {0: 0.3, 2: 0.5}  # the first before anybody has heard of the inner one
    for step in range(6):
        if step in sets:
            run.set("lr", sets[step])
        train_step(model, outer, batch(step))
        scheduler.step()
    expected = expected_rates(plain_rates(schedule, 6), sets)
    np.testing.assert_allclose(inner.rates, expected, rtol=1e-9)


class Wrapper(Optimizer):
    """As accelerate wraps: an Optimizer by class alone, whose hooks nobody calls."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.param_groups, self.state = optimizer.param_groups, optimizer.state

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure: Any = None) -> Any:
        return self.optimizer.step(closure)


def test_of_a_wrapper_the_optimizer_in_it_is_set(watch: Watch) -> None:
    model, schedule = made(mlp), SCHEDULES["exponential"]
    inner = Seen(model.parameters())
    scheduler, wrapper = schedule(inner), Wrapper(inner)
    run = watch(model, wrapper, probes=None)
    for step in range(4):
        if step == 0:
            run.set("lr", 0.5, group=0)
        train_step(model, wrapper, batch(step))
        scheduler.step()
    np.testing.assert_allclose(
        inner.rates, expected_rates(plain_rates(schedule, 4), {0: 0.5}), rtol=1e-9
    )
    assert len(run.knobs()[0].groups) == 1


def test_what_we_wrote_ourselves_is_no_schedule(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Seen(model.parameters())
    run = watch(model, optimizer, probes=None)
    for step in range(6):
        run.set("lr", 0.1 * (step + 1))
        train_step(model, optimizer, batch(step))
        assert optimizer.param_groups[0]["lr"] == optimizer.rates[-1] == 0.1 * (step + 1)
    assert live_options(optimizer).state() == []
