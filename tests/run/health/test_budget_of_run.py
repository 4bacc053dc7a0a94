"""The budget of a run: what becomes rarer, and what is measured as asked."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.probes.step.budget import SETTLED_STEPS
from notebook_probe.probes.step.stretching import AT_ONCE
from notebook_probe.run.attach.requests import Budgeted
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)

pytestmark = pytest.mark.usefixtures("budget_from_the_first_step")

percents = st.floats(0.01, 100.0)


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
    run.controls.settle()
    assert differing(everything(alone), everything(model)) == []
    series = run.series("0", "slow")
    steps = series.step.values
    np.testing.assert_allclose(series, np.asarray(wanted)[steps], rtol=1e-5)
    assert steps[0] == 0
    assert len(steps) < n_steps / 2
    (event, *_) = [event for event in run.events if event.kind == "budget"]
    assert event.step == 0
    assert json.loads(event.detail) == {"every": {"slow": AT_ONCE}, "turns": 1}
    assert "budget 1 %" in event.text
    assert re.search(r"due step; the aim is below (1|0.5) %", run.status().budget)
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


def steps_of(run: nbp.Run, module: str, quantity: str) -> list[int]:
    return run.series(module, quantity).step.values.tolist()


@pytest.mark.slow
def test_by_default_watching_keeps_below_five_per_cent_from_the_first_step_on(
    watch: Watch,
) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [slow, ("grad_norm", "every(1)")]}, budget=5.0)
    n_steps = 12
    train(model, sgd(model), batch, range(n_steps))
    assert steps_of(run, "0", "slow") == [0, 1], "the next due step, then no more for a while"
    assert steps_of(run, "0", "grad_norm") == list(range(n_steps)), "on a schedule of its own"
    assert run.status().budget.startswith("slow every ")
    assert [probe.note for probe in run.status().probes] == ["", ""], "nothing is silent"


def test_a_request_lifts_the_budget_at_the_next_boundary(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [slow]})
    run.budget(0.01)
    optimizer = sgd(model)
    train(model, optimizer, batch, range(SETTLED_STEPS + 1))
    ticket = run.controls.put(Budgeted(None))
    train(model, optimizer, batch, range(8))
    assert (ticket.state, ticket.text) == ("applied", "every due step is measured")
    assert run.status().budget == ""
    assert steps_of(run, "0", "slow")[-6:] == list(range(SETTLED_STEPS + 3, SETTLED_STEPS + 9))


def test_what_somebody_asks_for_at_a_preset_is_measured_as_asked(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [slow]})
    run.budget(0.01)
    optimizer = sgd(model)
    train(model, optimizer, batch, range(SETTLED_STEPS + 1))
    assert run.status().budget
    run.attach("0", slow, "every(1)")
    train(model, optimizer, batch, range(10))
    steps = steps_of(run, "0", "slow")
    assert steps[-9:] == list(range(SETTLED_STEPS + 2, SETTLED_STEPS + 11))


@pytest.mark.parametrize("percent", [0, -1, math.inf, math.nan, "5", True])
def test_watch_refuses_what_is_no_share_before_a_file_is_made(
    percent: Any, watch: Watch, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="a positive number of per cent, or None"):
        watch(made(mlp), budget=percent, store=tmp_path / "refused.zarr")
    assert not (tmp_path / "refused.zarr").exists()
