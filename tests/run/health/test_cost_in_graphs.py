"""The cost that a status reports contains the time inside compiled graphs."""

from __future__ import annotations

import math

import pytest

from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.frame import PassedStep
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.health.meter import Meter
from tests.models import mlp, sgd, train_step
from tests.run.conftest import Watch
from tests.run.health.parts import batch

STEP_S, COUNTED_S, IN_GRAPHS_S = 1.0, 0.01, 0.09


class Accounts:
    """Accounts of nothing."""

    def look(self) -> tuple[dict[Probe, float], float]:
        return {}, 0.0


def metered(percent: float | None, n_steps: int, every: int, reads: bool = True) -> Meter:
    """Return a meter of steps of which every n-th is longer, most of that inside a graph."""
    budget = Budget(percent=percent)
    budget.account(Accounts())
    meter = Meter(budget)
    for step in range(n_steps):
        is_due = step % every == 0
        if is_due and reads:
            budget.note_graphs()
        seconds = STEP_S + (COUNTED_S + IN_GRAPHS_S if is_due else 0.0)
        meter.add(step, seconds, COUNTED_S if is_due else 0.0, 0.0, is_due)
    return meter


@pytest.mark.parametrize("percent", [5.0, None])
def test_the_cost_contains_by_how_much_steps_with_readings_are_longer(
    percent: float | None,
) -> None:
    meter = metered(percent, 256, every=4)
    mean = STEP_S + (COUNTED_S + IN_GRAPHS_S) / 4
    assert meter.graphs_percent == pytest.approx(100 * IN_GRAPHS_S / 4 / mean)
    assert meter.cost_percent == pytest.approx(100 * (COUNTED_S + IN_GRAPHS_S) / 4 / mean)


def test_steps_in_which_nothing_is_due_are_compared_wherever_they_are_noted() -> None:
    meter = metered(None, 60, every=1)
    meter.add_passed({step: PassedStep(0, None, STEP_S, 0.0) for step in range(60, 124)})
    assert meter._budget.in_graphs_s == pytest.approx(IN_GRAPHS_S)
    assert meter.graphs_percent == 0.0, "none was due in the last steps"


def test_it_is_not_known_while_every_step_reads() -> None:
    meter = metered(None, 128, every=1)
    assert math.isnan(meter.graphs_percent)
    assert meter.cost_percent == pytest.approx(100 * COUNTED_S / (STEP_S + 0.1))


def test_a_model_that_is_not_compiled_spends_nothing_in_graphs() -> None:
    meter = metered(5.0, 256, every=4, reads=False)
    assert meter.graphs_percent == 0.0
    assert meter.total_cost_s == pytest.approx(64 * COUNTED_S)


@pytest.mark.parametrize(
    ("in_graphs_s", "said"),
    [
        (0.02, "% inside compiled graphs), measured lately"),
        (math.nan, "and what they take inside compiled graphs, which is not known yet, measured"),
        (0.0, "% of step time, measured lately"),
    ],
)
def test_the_status_says_what_graphs_take(
    in_graphs_s: float, said: str, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mlp()
    run = watch(model)
    monkeypatch.setattr(Budget, "in_graphs_s", in_graphs_s)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    assert said in str(run.status())
