"""A budget: watching that costs more than it may is done less often, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.step.budget import LEAST, ROOM, SETTLED_STEPS, WHOLE_STEPS, Budget
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.stretching import LARGEST, NORM_WEIGHT
from notebook_probe.quantities import quantities
from notebook_probe.schedules import Every
from tests.models import floats

batch = floats(5, 4)

percents = st.floats(0.01, 100.0)


def is_power_of_two(n: int) -> bool:
    return n >= 1 and n & (n - 1) == 0


class Model:
    """Steps of one second; each quantity costs so many seconds more where it is measured.

    ``schedules`` has those that are not due in every step.
    """

    def __init__(
        self,
        budget: float | None,
        costs: Mapping[str, float],
        n_whole: int = 0,
        schedules: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.told: list[tuple[int, str]] = []
        self.budget = Budget(self, budget)
        self.budget.account(self.counted)
        self.costs = dict(costs)
        self.probes = {
            name: Probe("", quantities[name], Every(schedules.get(name, 1)), may_stretch=True)
            for name in costs
        }
        self.schedules = {name: schedules.get(name, 1) for name in costs}
        self.step = 0
        self.hidden = self.fixed = self.planned = 0.0
        self.plans: set[tuple[object, ...]] = set()
        self.measured: dict[str, list[int]] = {name: [] for name in costs}
        for step in range(n_whole - WHOLE_STEPS, 0):
            self.budget.add(step, 1.0, 0.0)

    def event(self, step: int, kind: str, text: str) -> None:
        assert kind == "budget"
        self.told.append((step, text))

    def counted(self) -> dict[Probe, float]:
        """What each costs a step, as it is measured now."""
        return {p: self.costs[name] / self.period(name) for name, p in self.probes.items()}

    def period(self, name: str) -> int:
        """It is measured once in so many steps."""
        return self.schedules[name] * self.budget.factor(self.probes[name])

    def run(self, n_steps: int) -> float:
        """Take so many steps; what measuring cost of the time of the others, in per cent."""
        spent = 0.0
        for _ in range(n_steps):
            due = [name for name in self.probes if self.step % self.period(name) == 0]
            cost = self.fixed + sum(self.costs[name] for name in due)
            hidden = self.hidden * sum(self.costs[name] for name in due)
            if due and (plan := (id(self.budget.factors), *due)) not in self.plans:
                self.plans.add(plan)
                cost += self.planned
            for name in due:
                self.measured[name].append(self.step)
            self.budget.add(self.step, 1.0 + cost + hidden, cost)
            spent += cost + hidden
            self.step += 1
        return 100.0 * spent / n_steps

    @property
    def factors(self) -> list[int]:
        return [self.budget.factor(probe) for probe in self.probes.values()]


OTHERS = ("output_std", "zero_fraction", "update_ratio")
ENOUGH = 20_000
"""Steps after which the factors have settled for any costs here."""

costs = st.fixed_dictionaries({name: st.floats(0.001, 0.5) for name in (*OTHERS, "grad_norm")})


@pytest.mark.slow
@settings(max_examples=12)
@given(budget=st.floats(1.0, 50.0), costs=costs)
def test_after_a_while_the_cost_is_below_the_budget(
    budget: float, costs: Mapping[str, float]
) -> None:
    """And no rarer than it must be: a good part of the budget is used."""
    model = Model(budget, costs)
    model.run(ENOUGH)
    factors = model.factors
    spent = model.run(4 * LARGEST)
    assert model.factors == factors
    assert spent <= budget
    assert max(factors) == 1 or spent >= 0.9 * ROOM * budget


@settings(max_examples=12)
@given(budget=percents, several=st.lists(costs, max_size=8))
def test_whatever_the_costs_do_every_change_is_told_and_a_factor_is_a_power_of_two(
    budget: float, several: list[Mapping[str, float]]
) -> None:
    model = Model(budget, dict.fromkeys((*OTHERS, "grad_norm"), 0.0))
    seen = [model.budget.factors]
    for costs in several:
        model.costs = dict(costs)
        for _ in range(10):
            model.run(SETTLED_STEPS)
            if model.budget.factors is not seen[-1]:
                seen.append(model.budget.factors)
    every = [factor for factors in seen for factor in factors.values()]
    assert all(is_power_of_two(factor) and 1 < factor <= LARGEST for factor in every)
    assert len(model.told) >= len(seen) - 1
    steps = [step for step, _ in model.told]
    assert steps == sorted(set(steps))


@pytest.mark.slow
@settings(max_examples=12)
@given(cost=st.floats(0.05, 2.0))
def test_what_becomes_cheap_is_measured_at_every_due_step_again(cost: float) -> None:
    model = Model(1.0, {"output_std": cost})
    model.run(ENOUGH)
    assert model.factors > [1]
    model.costs = {"output_std": 1e-6}
    model.run(ENOUGH)
    assert model.factors == [1]
    assert model.budget.text == ""
    first = model.step
    model.run(10)
    assert model.measured["output_std"][-10:] == list(range(first, first + 10))


@given(budget=percents, cost=st.floats(1e-6, 1.0))
def test_a_cost_inside_the_budget_changes_nothing(budget: float, cost: float) -> None:
    model = Model(max(budget, 100.1 * cost), {"output_std": cost})
    model.run(500)
    assert model.factors == [1]
    assert model.told == []
    assert len(model.measured["output_std"]) == 500


def test_the_first_steps_are_measured_whole_and_the_very_first_do_not_count() -> None:
    model = Model(5.0, {"output_std": 1.0}, n_whole=WHOLE_STEPS)
    model.run(WHOLE_STEPS - 1)
    assert model.factors == [1]
    model.run(1)
    ((step, _),) = model.told
    assert step == WHOLE_STEPS - 1
    assert model.factors > [1]
    slow_at_first = Model(5.0, {"output_std": 10.0}, n_whole=WHOLE_STEPS)
    slow_at_first.run(WHOLE_STEPS - 2 * SETTLED_STEPS)
    slow_at_first.costs = {"output_std": 0.01}
    slow_at_first.run(500)
    assert slow_at_first.told == []


def test_the_dearest_is_stretched_first_and_norms_last() -> None:
    """Of 40 % of a step 26 may be spent: a fifth of the budget is left as room."""
    model = Model(32.0, {"grad_norm": 0.1, "output_std": 0.2, "zero_fraction": 0.1})
    model.run(SETTLED_STEPS)
    assert model.factors == [1, 4, 1]
    norms = Model(32.0, {"grad_norm": 0.19, "output_std": 0.1, "zero_fraction": 0.1})
    norms.run(SETTLED_STEPS)
    assert norms.factors == [1, 4, 4]
    dear = Model(32.0, {"grad_norm": 1.01 * 0.1 / NORM_WEIGHT, "output_std": 0.1})
    dear.run(SETTLED_STEPS)
    assert dear.factors == [2, 2]


def test_what_torch_takes_to_call_a_hook_is_seen_from_how_long_steps_are() -> None:
    """Twice as much as was counted passes unseen at first, while every step is alike."""
    model = Model(10.0, {"output_std": 0.3})
    model.hidden = 1.0
    model.run(ENOUGH)
    assert model.run(4 * LARGEST) <= 10.0


def test_a_validation_between_two_steps_makes_nothing_cheaper_or_dearer() -> None:
    model = Model(10.0, {"output_std": 0.3})
    model.run(1000)
    settled = model.factors
    for _ in range(20):
        model.run(50)
        model.budget.add(model.step, 500.0, 0.0)
        model.step += 1
    assert model.factors == settled


@pytest.mark.parametrize("budget", [2.0, 5.0, 20.0])
def test_what_is_dear_and_rarely_due_has_the_others_stretched_no_farther_than_they_must_be(
    budget: float,
) -> None:
    """What these cost in all the steps between is nothing that must be borne: it can be saved."""
    usual = {"output_std": 0.2, "zero_fraction": 0.2, "grad_norm": 0.05}
    model = Model(budget, {**usual, "effective_rank": 5.0}, schedules={"effective_rank": 10})
    model.run(8 * SETTLED_STEPS)
    settled = 100.0 * sum(model.counted().values())
    assert 0.9 * ROOM * budget <= settled <= 1.1 * budget


def test_a_step_in_which_the_machine_was_busy_silences_nothing() -> None:
    """One look at a few steps has nothing measured less than a sixteenth as often."""
    model = Model(5.0, {"output_std": 0.1, "grad_norm": 0.1})
    model.run(SETTLED_STEPS - 1)
    model.costs = {"output_std": 100.0, "grad_norm": 100.0}
    model.run(1)
    model.costs = {"output_std": 0.1, "grad_norm": 0.1}
    assert max(model.factors) == 16
    model.run(10 * SETTLED_STEPS)
    assert max(model.factors) <= 16


def test_what_it_takes_once_to_plan_what_is_read_together_is_not_taken_for_what_reading_takes() -> (
    None
):
    """Whenever factors have changed other quantities meet, and how to read them is worked out."""
    usual = {"output_std": 0.2, "zero_fraction": 0.1, "update_ratio": 0.1, "grad_norm": 0.05}
    model, same = Model(5.0, usual), Model(5.0, usual)
    model.planned = 2.0
    for one in (model, same):
        one.run(20 * SETTLED_STEPS)
    assert model.factors == same.factors


def test_what_is_left_whole_is_stretched_once_it_takes_too_much() -> None:
    """Though it is in every step, cheap or dear."""
    model = Model(10.0, {"output_std": 0.5, "grad_norm": 0.01})
    model.run(10 * SETTLED_STEPS)
    assert model.factors[1] == 1
    model.costs = {"output_std": 0.5, "grad_norm": 0.3}
    model.run(ENOUGH)
    assert model.run(4 * LARGEST) <= 10.0


def test_where_what_cannot_be_stretched_takes_all_the_rest_is_kept_small() -> None:
    model = Model(5.0, {"output_std": 0.3})
    model.fixed = 0.2
    model.run(ENOUGH)
    assert model.run(4 * LARGEST) - 100 * model.fixed <= 5.0 * LEAST
    assert model.factors < [LARGEST]


@pytest.mark.parametrize("fixed", [0.0, 0.025, 0.035])
def test_what_a_busy_machine_has_stretched_is_taken_back_beside_what_is_in_every_step(
    fixed: float,
) -> None:
    usual = {"output_std": 0.05, "update_ratio": 0.08}
    model = Model(5.0, {name: 8 * cost for name, cost in usual.items()})
    model.fixed = fixed
    model.run(3000)
    while_busy = model.factors
    model.costs = dict(usual)
    model.run(ENOUGH)
    calm = model.factors
    assert all(after < before for after, before in zip(calm, while_busy, strict=True))
    spent = model.run(4 * LARGEST) - 100 * fixed
    left = 5.0 - 100 * fixed
    assert 0.3 * left < spent < left
    assert model.factors == calm, "it has settled"


def test_what_is_too_dear_for_any_budget_is_measured_as_rarely_as_can_be() -> None:
    model = Model(0.01, {"output_std": 1e6})
    model.run(10 * LARGEST)
    assert model.factors == [LARGEST]


def test_without_a_budget_any_cost_passes() -> None:
    model = Model(None, {"output_std": 1e6})
    model.run(500)
    assert len(model.measured["output_std"]) == 500
    assert model.budget.text == ""


def test_the_budget_says_what_it_does_and_why() -> None:
    """Hand-made: what is measured takes as long as the training, and a tenth of it may."""
    model = Model(10.0, {"output_std": 0.5, "zero_fraction": 0.5})
    model.run(SETTLED_STEPS - 1)
    assert (model.told, model.budget.text) == ([], "")
    model.run(1)
    ((step, text),) = model.told
    assert step == SETTLED_STEPS - 1
    assert text == (
        "watching cost 100.0 % of step time, budget 10 %: "
        "measured from here on is output_std, zero_fraction every 16th due step"
    )
    assert model.budget.text == (
        "output_std, zero_fraction every 16th due step; the aim is below 10 %"
    )


def test_there_is_room_before_factors_are_taken_back() -> None:
    """Halving them doubles the cost: it must stay below the budget then."""
    assert 2 * ROOM < 1.0


@given(factor=st.sampled_from([1, 2, 4, 8]), schedules=st.lists(st.integers(1, 4), unique=True))
def test_of_the_due_steps_of_each_schedule_every_nth_is_measured(
    factor: int, schedules: list[int]
) -> None:
    """Counted per schedule, so that one that is rarely due is not starved by another."""
    budget, std, norm = Budget(), quantities["output_std"], quantities["grad_norm"]
    budget.factors = MappingProxyType({"output_std": factor})
    build: Any = lambda due, sampled: due  # noqa: E731
    due_probes: Any = DueProbes(build, lambda frame: None, budget)
    stretched = [Probe("", std, Every(n), may_stretch=True) for n in schedules]
    asked = [Probe("asked", std, Every(n)) for n in schedules]
    others = [Probe("", norm, Every(n), may_stretch=True) for n in schedules]
    due_probes.set_probes([*stretched, *asked, *others])
    found = [due_probes.upcoming(step) for step in range(96)]
    for probes, every in ((stretched, factor), (asked, 1), (others, 1)):
        for probe in probes:
            due = [step for step in range(96) if probe.schedule(step)]
            assert [step for step in range(96) if probe in found[step]] == due[::every]
