"""A budget: watching that costs more than it may is done less often, and says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.probes.step.budget import LARGEST, ROOM, SETTLED_STEPS, Budget
from notebook_probe.schedules import Every, Schedule
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)

percents = st.floats(0.01, 100.0)


def is_power_of_two(n: int) -> bool:
    return n >= 1 and n & (n - 1) == 0


class Model:
    """Steps of one second; a measured one costs ``cost`` seconds in addition."""

    def __init__(self, budget: float, cost: float, schedule: Schedule) -> None:
        self.told: list[tuple[int, str]] = []
        self.stretch = Budget(self)
        self.stretch.set_budget(budget)
        self.cost, self.schedule = cost, schedule
        self.step = 0
        self.measured: list[int] = []

    def event(self, step: int, kind: str, text: str) -> None:
        assert kind == "budget"
        self.told.append((step, text))

    def run(self, n_steps: int) -> float:
        """Take so many steps; the share of them that measuring cost, in per cent."""
        seconds = spent = 0.0
        for _ in range(n_steps):
            due = self.schedule(self.step) and self.stretch.passes(self.schedule, self.step)
            cost = self.cost if due else 0.0
            self.measured += [self.step] if due else []
            self.stretch.add(self.step, 1.0 + cost, cost)
            seconds, spent = seconds + 1.0 + cost, spent + cost
            self.step += 1
        return 100.0 * spent / seconds


ENOUGH = 6_000
"""Steps after which the stretch has settled for any cost and schedule here."""


@settings(max_examples=12)
@given(budget=st.floats(0.5, 100.0), cost=st.floats(0.0, 2.0), every=st.integers(1, 3))
def test_after_a_while_the_cost_is_below_the_budget(budget: float, cost: float, every: int) -> None:
    """And no rarer than it must be: half as rarely would be too much, or nearly."""
    model = Model(budget, cost, Every(every))
    model.run(ENOUGH)
    factor = model.stretch.factor
    spent = model.run(ENOUGH)
    assert model.stretch.factor == factor
    assert is_power_of_two(factor)
    assert spent <= 1.1 * budget
    assert factor == 1 or spent >= 0.9 * ROOM * budget


@given(budget=percents, costs=st.lists(st.floats(0.0, 5.0), max_size=8), every=st.integers(1, 3))
def test_whatever_the_costs_do_every_change_is_told_and_a_factor_is_a_power_of_two(
    budget: float, costs: list[float], every: int
) -> None:
    model = Model(budget, 0.0, Every(every))
    seen = [model.stretch.factor]
    for cost in costs:
        model.cost = cost
        for _ in range(10):
            model.run(SETTLED_STEPS)
            if model.stretch.factor != seen[-1]:
                seen.append(model.stretch.factor)
    assert all(is_power_of_two(factor) and factor <= LARGEST for factor in seen)
    assert len(model.told) >= len(seen) - 1
    steps = [step for step, _ in model.told]
    assert steps == sorted(set(steps))


@settings(max_examples=12)
@given(cost=st.floats(0.05, 2.0))
def test_what_becomes_cheap_is_measured_at_every_due_step_again(cost: float) -> None:
    model = Model(1.0, cost, Every(1))
    model.run(ENOUGH)
    assert model.stretch.factor > 1
    model.cost = 0.0
    model.run(ENOUGH)
    assert model.stretch.factor == 1
    first = model.step
    model.run(10)
    assert model.measured[-10:] == list(range(first, first + 10))


@given(factor=st.sampled_from([1, 2, 4, 8]), schedules=st.lists(st.integers(1, 4), unique=True))
def test_of_the_due_steps_of_each_schedule_every_nth_is_measured(
    factor: int, schedules: list[int]
) -> None:
    """Counted per schedule, so that one that is rarely due is not starved by another."""
    stretch = Budget()
    stretch.factor = factor
    for n in schedules:
        schedule = Every(n)
        due = [step for step in range(96) if schedule(step)]
        passed = [step for step in due if stretch.passes(schedule, step)]
        assert passed == due[::factor]


@given(budget=percents, cost=st.floats(0.0, 1.0))
def test_a_cost_inside_the_budget_changes_nothing(budget: float, cost: float) -> None:
    share = 100.0 * cost / (1.0 + cost)
    model = Model(max(budget, 1.001 * share), cost, Every(1))
    model.run(500)
    assert model.stretch.factor == 1
    assert model.told == []
    assert len(model.measured) == 500


def test_what_is_too_dear_for_any_budget_is_measured_as_rarely_as_can_be() -> None:
    model = Model(0.01, 1e6, Every(1))
    model.run(10 * LARGEST)
    assert model.stretch.factor == LARGEST


def test_without_a_budget_any_cost_passes() -> None:
    model = Model(math.inf, 1e6, Every(1))
    model.run(500)
    assert len(model.measured) == 500
    assert model.stretch.text == ""


def test_the_stretch_says_what_it_does_and_why() -> None:
    """Hand-made: a second of measuring for each of training is 50 %, of which 10 % may be."""
    model = Model(10.0, 1.0, Every(1))
    model.run(SETTLED_STEPS - 1)
    assert model.told == []
    assert model.stretch.text == "budget 10 % of step time: every due step is measured"
    model.run(1)
    ((step, text),) = model.told
    assert step == SETTLED_STEPS - 1
    assert text == (
        "watching cost 50.0 % of step time, budget 10 %: "
        "one of 8 due steps is measured from here on"
    )
    assert model.stretch.factor == 8
    assert model.stretch.text == "budget 10 % of step time: one of 8 due steps is measured"


def test_there_is_room_before_a_stretch_is_taken_back() -> None:
    """Halving the factor doubles the cost: it must stay below the budget then."""
    assert 2 * ROOM < 1.0


# ---------------------------------------------------------------- of a run


def slow(output: Tensor) -> Tensor:
    """Costs a hundred times what the step costs, without touching a clock."""
    large = torch.ones(200, 200)
    for _ in range(20):
        large = (large @ large).clamp(0, 1)
    return output.detach().norm() + 0 * large.sum()


def test_a_budget_thins_the_series_and_leaves_every_value_right(watch: Watch) -> None:
    """Training is the same; what is recorded is what an unwatched twin computes at that step."""
    alone, model = made(mlp), made(mlp)
    wanted: list[float] = []
    alone.get_submodule("0").register_forward_hook(
        lambda module, given, output: wanted.append(
            float(np.linalg.norm(output.detach().double().numpy()))
        )
    )
    run = watch(model, probes={"0": [slow]})
    run.budget(1.0)
    n_steps = 4 * SETTLED_STEPS
    for each in (alone, model):
        train(each, sgd(each), batch, range(n_steps))
    run.settle()
    assert differing(everything(alone), everything(model)) == []
    series = run.series("0", "slow")
    steps = series.step.values
    np.testing.assert_allclose(series, np.asarray(wanted)[steps], rtol=1e-5)
    assert steps[:SETTLED_STEPS].tolist() == list(range(SETTLED_STEPS))
    assert len(steps) < n_steps / 2
    (event, *_) = [event for event in run.events if event.kind == "budget"]
    assert event.step == SETTLED_STEPS - 1
    assert "budget 1 %" in event.text
    assert "due steps is measured" in run.status().budget
    assert run.status().budget in str(run.status())


def test_no_budget_measures_every_due_step_again(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [slow]})
    run.budget(0.01)
    optimizer = sgd(model)
    train(model, optimizer, batch, range(2 * SETTLED_STEPS))
    run.budget(None)
    assert run.status().budget == ""
    first = run.status().step
    train(model, optimizer, batch, range(6))
    steps = run.series("0", "slow").step.values.tolist()
    assert steps[-5:] == list(range(first + 1, first + 6)), "the next step was asked for already"


def test_what_the_user_logs_and_what_the_model_tells_is_never_thinned(watch: Watch) -> None:
    class Telling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            nbp.collect("told", x.norm())
            return self.linear(x)

    model = made(Telling)
    run = watch(model, probes={"linear": [slow]})
    run.budget(0.01)
    optimizer = sgd(model)
    n_steps = 3 * SETTLED_STEPS
    for step in range(n_steps):
        run.log(loss=train_step(model, optimizer, batch(step)))
    assert len(run.series("linear", "slow")) < n_steps
    assert run.series("", "loss").step.values.tolist() == list(range(n_steps))
    assert run.series("", "told").step.values.tolist() == list(range(n_steps))


@pytest.mark.parametrize("percent", [0, -1, 0.0, math.inf, math.nan])
def test_what_is_no_share_is_refused(percent: float, watch: Watch) -> None:
    run = watch(made(mlp))
    with pytest.raises(ValueError, match="a positive number of per cent, or None"):
        run.budget(percent)
    assert run.status().budget == ""
