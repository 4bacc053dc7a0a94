"""A budget: watching that costs more than it may is done less often, and says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_probe.probes.due.due_probes import DueProbes
from notebook_probe.probes.due.turns import Turns
from notebook_probe.probes.step import budget
from notebook_probe.probes.step.budget import AIM, LEAST, ROOM, SETTLED_STEPS, WHOLE_STEPS, Budget
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.stretching import AT_ONCE, LARGEST, NORM_WEIGHT
from notebook_probe.quantities import quantities
from notebook_probe.schedules import Every

pytestmark = pytest.mark.usefixtures("budget_from_the_first_step")

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
        schedules: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.told: list[tuple[int, str]] = []
        self.details: list[dict[str, Any]] = []
        self.budget = Budget(self, budget)
        self.budget.account(self)
        self.costs = dict(costs)
        self.probes = {
            name: Probe("", quantities[name], Every(schedules.get(name, 1)), may_stretch=True)
            for name in costs
        }
        self.schedules = {name: schedules.get(name, 1) for name in costs}
        self.step = 0
        self.hidden = self.fixed = self.planned = self.beyond = self._spent = 0.0
        self.in_graphs = 0.0
        self.plans: set[tuple[object, ...]] = set()
        self.measured: dict[str, list[int]] = {name: [] for name in costs}

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None:
        assert kind == "budget"
        self.told.append((step, text))
        self.details.append(json.loads(detail))

    def expected(self) -> dict[Probe, float]:
        """What each costs a step, as it is measured now."""
        return {p: self.costs[name] / self.period(name) for name, p in self.probes.items()}

    def look(self) -> tuple[dict[Probe, float], float]:
        return self.expected(), self._spent

    def period(self, name: str) -> int:
        """It is measured once in so many steps."""
        return self.schedules[name] * self.budget.factor(self.probes[name])

    def run(self, n_steps: int) -> float:
        """Take so many steps; what measuring cost of the time of the others, in per cent."""
        total = 0.0
        for _ in range(n_steps):
            due = [name for name in self.probes if self.step % self.period(name) == 0]
            of_probes = sum(self.costs[name] for name in due)
            self._spent += of_probes
            cost = self.fixed + of_probes + (self.beyond if due else 0.0)
            hidden, planned = self.hidden * of_probes, 0.0
            if due and self.in_graphs:
                hidden += self.in_graphs
                self.budget.note_graphs()
            if due and (plan := (id(self.budget.factors), *due)) not in self.plans:
                self.plans.add(plan)
                planned = self.planned
            for name in due:
                self.measured[name].append(self.step)
            seconds = 1.0 + cost + hidden + planned
            self.budget.add(self.step, seconds, cost + planned, planned, bool(due))
            total += cost + hidden
            self.step += 1
        return 100.0 * total / n_steps

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
    """And a good part of it is used: one that takes nearly all can only be doubled or not."""
    model = Model(budget, costs)
    model.run(ENOUGH)
    factors = model.factors
    spent = model.run(4 * LARGEST)
    assert model.factors == factors
    assert spent <= budget
    assert max(factors) == 1 or spent >= AIM / 2 * budget


alike = st.fixed_dictionaries({name: st.floats(0.05, 0.1) for name in (*OTHERS, "grad_norm")})


@settings(max_examples=40)
@given(budget=st.floats(2.0, 20.0), costs=alike, fixed=st.floats(0.0, 0.1))
def test_within_three_hundred_steps_most_of_the_budget_is_spent_and_no_more(
    budget: float, costs: Mapping[str, float], fixed: float
) -> None:
    """With what a step costs in which nothing is due; half of it is for measuring in any case."""
    model = Model(budget, costs)
    model.fixed = fixed
    model.run(300)
    expected = 100.0 * sum(model.expected().values())
    left = max(budget - 100.0 * fixed, LEAST * budget)
    assert 0.6 * left <= expected <= 1.01 * left


@settings(max_examples=20)
@given(costs=alike)
def test_the_first_steps_cost_little_more_than_the_others(costs: Mapping[str, float]) -> None:
    """One complete step, and then at most a few that cost twice the budget."""
    model = Model(5.0, costs)
    first = model.run(1)
    assert first == pytest.approx(100 * sum(costs.values()))
    assert model.run(49) <= 30.0


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


def test_the_first_step_is_measured_whole_and_what_it_costs_decides() -> None:
    model = Model(5.0, {"output_std": 1.0})
    assert model.factors == [1]
    model.run(1)
    ((step, _),) = model.told
    assert step == 0
    assert model.factors == [AT_ONCE]


def test_first_steps_are_measured_whole_while_they_cost_little_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "WHOLE_S", 1e9)
    model = Model(5.0, {"output_std": 1.0})
    model.run(WHOLE_STEPS)
    ((step, _),) = model.told
    assert step == WHOLE_STEPS - 1
    monkeypatch.setattr(budget, "WHOLE_S", 10.5)
    model = Model(5.0, {"output_std": 1.0})
    model.run(WHOLE_STEPS)
    assert model.told[0][0] == 10


def test_a_first_step_that_is_slow_costs_no_more_than_a_short_while() -> None:
    model = Model(5.0, {"output_std": 10.0, "grad_norm": 10.0})
    model.run(1)
    model.costs = {"output_std": 0.01, "grad_norm": 0.01}
    model.run(100)
    assert model.factors == [1, 1]


def test_the_dearest_is_stretched_first_and_norms_last() -> None:
    """Of 40 % of a step 28.8 may be spent: a tenth of the budget is left as room."""
    model = Model(32.0, {"grad_norm": 0.1, "output_std": 0.2, "zero_fraction": 0.1})
    model.run(1)
    assert model.factors == [1, 4, 1]
    norms = Model(32.0, {"grad_norm": 0.15, "output_std": 0.1, "zero_fraction": 0.1})
    norms.run(1)
    assert norms.factors == [1, 2, 2]
    dear = Model(20.0, {"grad_norm": 1.01 * 0.1 / NORM_WEIGHT, "output_std": 0.1})
    dear.run(1)
    assert dear.factors == [2, 2]


def test_what_a_step_costs_because_anything_is_due_is_saved_by_what_is_due_most_often() -> None:
    """A norm alone is cheap, and has each step cost as much as all the others together."""
    usual = {"grad_norm": 0.01, "output_std": 0.1, "zero_fraction": 0.1}
    model, alone = Model(5.0, usual), Model(5.0, usual)
    model.beyond = 0.2
    for one in (model, alone):
        one.run(1000)
    assert model.factors[0] > 2 * alone.factors[0]
    assert model.run(4 * LARGEST) <= 5.5


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
    settled = 100.0 * sum(model.expected().values())
    assert 0.5 * budget <= settled <= 1.1 * budget


def test_a_step_in_which_the_machine_was_busy_silences_nothing() -> None:
    """One look at a few steps has nothing measured less than a sixteenth as often."""
    model = Model(5.0, {"output_std": 0.01, "grad_norm": 0.01})
    model.run(4 * SETTLED_STEPS)
    assert model.factors == [1, 1]
    model.costs = {"output_std": 100.0, "grad_norm": 100.0}
    model.run(1)
    model.costs = {"output_std": 0.01, "grad_norm": 0.01}
    model.run(10 * SETTLED_STEPS)
    assert max(model.factors) <= AT_ONCE


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


def test_where_what_cannot_be_stretched_takes_much_half_of_the_budget_is_for_measuring() -> None:
    """It is said apart: measuring less would not lower it."""
    model = Model(5.0, {"output_std": 0.3})
    model.fixed = 0.2
    model.run(ENOUGH)
    assert 1.0 <= model.run(4 * LARGEST) - 100 * model.fixed <= 2.5
    assert model.budget.text.endswith(
        "the aim is below 2.5 % for measuring; 20.0 % more are spent whatever is measured"
    )


def test_what_cannot_be_stretched_is_part_of_the_budget() -> None:
    model = Model(5.0, {"output_std": 0.2})
    model.fixed = 0.015
    model.run(ENOUGH)
    assert 2.5 <= model.run(4 * LARGEST) <= 5.0
    assert model.budget.text.endswith(
        "the aim is below 5 %, of which 1.5 % are spent whatever is measured"
    )


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
    spent, left = model.run(4 * LARGEST) - 100 * fixed, max(5.0 - 100 * fixed, 5.0 * LEAST)
    assert 0.4 * left < spent < left
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
    assert (model.told, model.budget.text) == ([], "")
    model.run(1)
    ((step, text),) = model.told
    assert step == 0
    assert text == (
        "measuring costs 100.0 % of step time, budget 10 %: "
        "measured from here on is output_std, zero_fraction every 16th due step"
    )
    assert model.details == [{"every": {"output_std": 16, "zero_fraction": 16}, "turns": 1}]
    assert model.budget.text == (
        "output_std, zero_fraction every 16th due step; the aim is below 10 %"
    )


def test_there_is_room_before_factors_are_taken_back() -> None:
    assert ROOM < AIM < 1.0


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


PLACES = [f"layer{i:02}" for i in range(64)]


@given(
    factor=st.sampled_from([1, 2, 8, 64]), every=st.integers(1, 3), order=st.permutations(PLACES)
)
def test_of_many_modules_each_is_measured_at_its_turn_among_the_due_steps(
    factor: int, every: int, order: list[str]
) -> None:
    """Whatever the order of the modules: at all due steps k with ``k % factor`` its turn."""
    budget, std = Budget(), quantities["output_std"]
    budget.factors = MappingProxyType({"output_std": factor})
    build: Any = lambda due, sampled: due  # noqa: E731
    due_probes: Any = DueProbes(build, lambda frame: None, budget)
    probes = [Probe(place, std, Every(every), may_stretch=True) for place in order]
    due_probes.set_probes(probes)
    found = [due_probes.upcoming(step) for step in range(2 * factor * every)]
    turns = Turns(PLACES)
    for probe in probes:
        due = range(0, 2 * factor * every, every)
        wanted = [s for k, s in enumerate(due) if k % factor == turns.turn(probe.place, factor)]
        assert [step for step, here in enumerate(found) if probe in here] == wanted
        assert (probe.every, budget.n_turns) == (factor, turns.n)


@pytest.mark.parametrize("in_graphs", [0.01, 0.3, 2.0])
def test_what_compiled_graphs_take_is_seen_from_longer_steps(in_graphs: float) -> None:
    """Steps in which anything is due are longer, of which the hooks count 0.1 % only."""
    model = Model(5.0, {"output_std": 0.001, "grad_norm": 0.001})
    model.fixed, model.in_graphs = 0.0001, in_graphs
    first = model.run(8)
    assert first <= 100 * in_graphs * 5 / 8 + 1, "four steps to look at, and one of the next four"
    model.run(2000)
    spent = model.run(2048)
    assert spent <= 5.05
    assert spent >= 1.0
    assert model.factors[0] == model.factors[1] or max(model.factors) <= 2


def test_graphs_that_cost_nothing_are_read_at_every_step_again() -> None:
    model = Model(5.0, {"output_std": 0.001})
    model.fixed, model.in_graphs = 0.0001, 1e-9
    model.run(3000)
    assert model.factors == [1]
