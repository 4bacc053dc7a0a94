"""Steps after an event: measured whole, though a budget stretches what is measured."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import notebook_probe as nbp
from notebook_probe.alerts import Alert
from notebook_probe.probes.due.turns import LEAST_MODULES
from notebook_probe.probes.step.budget import BOUGHT_S, BOUGHT_SHARE, BOUGHT_STEPS
from notebook_probe.record.format.notes import WHOLE
from notebook_probe.record.format.source import Event
from notebook_probe.run.attach.requests import Set
from tests.models import floats, made, sgd, train
from tests.run.conftest import Watch
from tests.run.health.test_budget import Model

N_LAYERS, FACTOR, N_STEPS = 2 * LEAST_MODULES, 8, 32
NAMES = ("output_std", "grad_norm", "weight_norm", "update_ratio", "output_grad_norm")
batch = floats(5, 4)


def deep() -> nn.Module:
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(N_LAYERS)))


def trained(watch: Watch, at: int, happens: Callable[[nbp.Run], object]) -> nbp.Run:
    """A run with stretched probes in which something happens after step ``at``."""
    model = made(deep)
    optimizer = sgd(model)
    run = watch(model, optimizer, budget=None)
    factors = MappingProxyType(dict.fromkeys(NAMES, FACTOR))
    run._parts.observer.training._budget.factors = factors
    for name in {*run.controls.rules} - {"rate_jump"}:
        del run.controls.rules[name]  # what they find would be reasons, too
    train(model, optimizer, batch, range(at + 1))
    happens(run)
    train(model, optimizer, batch, range(at + 1, N_STEPS))
    run.controls.settle()
    return run


def n_values(run: nbp.Run, name: str = "grad_norm") -> dict[int, int]:
    """Step -> number of layers with a value."""
    layers = [str(i) for i in range(N_LAYERS)]
    counts = run.data[name].sel(module=layers).notnull().sum("module")
    return {int(step): int(n) for step, n in zip(counts.step.values, counts.values, strict=True)}


def whole_steps(run: nbp.Run) -> list[int]:
    return [step for step, n in n_values(run).items() if n == N_LAYERS]


def whole_events(run: nbp.Run) -> list[Event]:
    return [event for event in run.events if event.kind == WHOLE]


def raise_alert(run: nbp.Run, step: int = 10, rule: str = "loss_spike") -> None:
    run._parts.alarm._keep(Alert(rule, step, "It jumped.", ("(root)",), ("train_loss",)))


REASONS: dict[str, Callable[[nbp.Run], object]] = {
    "an alert": raise_alert,
    "a fact": lambda run: run._parts.facts._findings.say(
        "rate_jump", 10, words={"does": "rose", "factor": "9", "old": "1", "new": "9"}
    ),
    "an attach": lambda run: run.attach("3", "grad_abs_max"),
    "a detach": lambda run: run.detach("3", "grad_norm"),
    "a request of a panel": lambda run: run.controls.put(Set("lr", 0.02)),
    "a click on a layer": lambda run: run.controls.looked_at(),
}


@pytest.mark.parametrize("happens", REASONS.values(), ids=REASONS)
def test_the_steps_after_it_are_measured_whole(
    happens: Callable[[nbp.Run], object], watch: Watch
) -> None:
    run = trained(watch, 10, happens)
    name = "weight_norm"  # which no reason takes off
    whole = [step for step, n in n_values(run, name).items() if n == N_LAYERS]
    assert whole[:1] in ([11], [12]), "a request is applied before the next step"
    assert whole == [*range(whole[0], whole[0] + BOUGHT_STEPS)]
    (event,) = whole_events(run)
    assert f"steps {whole[0]} to {whole[-1]} are measured whole: " in event.text
    assert f"{BOUGHT_STEPS} steps measured whole after events" in run.status().budget


def test_before_and_after_them_each_module_is_measured_in_its_turn(watch: Watch) -> None:
    """At the steps at which it would have been without them."""
    plain, run = trained(watch, 10, lambda run: None), trained(watch, 10, raise_alert)
    for name in NAMES:
        whole = np.isin(run.data.step.values, whole_steps(run))
        known = np.asarray(run.data[name].notnull().transpose("step", "module"))
        usual = np.asarray(plain.data[name].notnull().transpose("step", "module"))
        steps = plain.data.step.values
        for step, row in zip(run.data.step.values[~whole], known[~whole], strict=True):
            expected = usual[steps == step][0] if step in steps else np.zeros_like(row)
            np.testing.assert_array_equal(row, expected, err_msg=f"{name} at step {step}")


def test_what_is_measured_in_them_is_what_is_measured_without_a_budget(watch: Watch) -> None:
    run, model = trained(watch, 10, raise_alert), made(deep)
    every = watch(model, budget=None)
    train(model, sgd(model), batch, range(N_STEPS))
    steps = whole_steps(run)
    for name in NAMES:
        found, wanted = (one.data[name].sel(step=steps) for one in (run, every))
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_news_of_steps_that_were_measured_whole_asks_for_no_more(watch: Watch) -> None:
    """Many rules find the consequences of one cause."""

    def happens(run: nbp.Run) -> None:
        raise_alert(run, 10, "loss_spike")
        raise_alert(run, 10, "nonfinite_loss")
        run._parts.gate.each_step(lambda step: raise_alert(run, 15) if step == 25 else None)

    run = trained(watch, 10, happens)
    assert whole_steps(run) == [*range(11, 11 + BOUGHT_STEPS)]
    (event,) = whole_events(run)
    assert event.text.endswith(
        "loss_spike was found at step 10, nonfinite_loss was found at step 10"
    )


def test_where_every_step_is_measured_whole_nothing_is_asked_for(watch: Watch) -> None:
    model = made(deep)
    run = watch(model, budget=None)
    train(model, sgd(model), batch, range(3))
    raise_alert(run, 2)
    train(model, sgd(model), batch, range(3, 6))
    assert not whole_events(run)
    assert "whole" not in run.status().budget


@settings(max_examples=10)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=20), st.floats(0.05, 0.5))
def test_all_of_them_together_cost_no_more_than_was_set_aside(gaps: list[int], cost: float) -> None:
    """And the budget takes them for no usual steps: factors do not grow by them."""
    model = Model(1.0, {"grad_norm": cost, "output_std": cost})
    model.run(2000)
    factors, bought_s = model.factors, 0.0
    for gap in gaps:
        whole = model.budget.buy(model.step)
        assert len(whole) <= BOUGHT_STEPS
        for step in whole:
            model.budget.add(step, 1.0 + 2 * cost, 2 * cost, is_due=True)
            bought_s += 2 * cost
        model.step += len(whole)
        model.run(gap)
    assert bought_s <= BOUGHT_S + BOUGHT_SHARE * 1.2 * model.step
    assert all(now <= before for now, before in zip(model.factors, factors, strict=True))


def test_values_of_whole_steps_that_are_on_their_way_are_not_missing(watch: Watch) -> None:
    """A step is closed before its values are known; whole steps follow one another at once."""
    run = trained(watch, N_STEPS - 1 - BOUGHT_STEPS, raise_alert)
    known = run.data["weight_norm"].sel(module="0").dropna("step").step.values.tolist()
    assert known[-2:] == [N_STEPS - 2, N_STEPS - 1]
    [probe] = [
        probe
        for probe in run._parts.observer.training.probes
        if (probe.place, probe.quantity.name) == ("0", "weight_norm")
    ]
    for n_on_their_way in (0, 1, 2, 3):
        probe.last_step = known[-1 - n_on_their_way]
        [status] = [
            one for one in run.status().probes if (one.module, one.quantity) == ("0", "weight_norm")
        ]
        assert status.note == "", n_on_their_way
