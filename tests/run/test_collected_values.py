"""What a model may give of itself, and under which names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import floats, made, sgd
from tests.probes.oracles import column
from tests.run.conftest import Watch

batch = floats(5, 4)


class Says(nn.Module):
    """Gives whatever it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Tensor, name: str, value: Any, combine: Any = "mean") -> Tensor:
        nbp.collect(name, value, combine=combine)
        return self.linear(x)


def step_of(model: nn.Module, *given: Any) -> None:
    optimizer = sgd(model)
    model(batch(0), *given).sum().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (2, 2.0),
        (0.25, 0.25),
        (True, 1.0),
        (np.float64(0.5), 0.5),
        (np.array([3]), 3.0),
        (torch.tensor(1.5, dtype=torch.bfloat16), 1.5),
        (torch.tensor([[7]]), 7.0),
        (torch.tensor(1.0, requires_grad=True), 1.0),
        (math.inf, math.inf),
    ],
    ids=repr,
)
def test_any_one_real_number_is_taken(value: Any, wanted: float, watch: Watch) -> None:
    model = made(Says)
    run = watch(model, probes=None)
    step_of(model, "value", value)
    assert column(run, "(root)", "value") == [wanted]


def test_a_nan_that_was_collected_is_no_gap(watch: Watch) -> None:
    model = made(Says)
    run = watch(model, probes=None)
    step_of(model, "value", math.nan)
    assert len(run.series("", "value")) == 1


def test_a_value_without_a_value_is_a_gap_and_breaks_nothing(watch: Watch) -> None:
    model = made(Says)
    run = watch(model, probes={"linear": ["output_norm"]})
    step_of(model, "value", torch.tensor(1.0, device="meta"))
    run.controls.settle()
    assert len(run.series("linear", "output_norm")) == 1
    assert np.isnan(run.data.to_array().sel(module="(root)")).all()


@pytest.mark.parametrize(
    "value", [torch.ones(2), torch.tensor(1j), "text", None, [1.0], 1j], ids=repr
)
def test_what_is_no_number_is_refused_where_it_is_given(value: Any, watch: Watch) -> None:
    model = made(Says)
    watch(model, probes=None)
    with pytest.raises(nbp.QuantityError, match=r"collect\('value', ...\):.*one real number"):
        model(batch(0), "value", value)


def test_an_unknown_way_to_combine_lists_those_there_are(watch: Watch) -> None:
    model = made(Says)
    watch(model, probes=None)
    with pytest.raises(nbp.QuantityError, match="combine='median'; allowed: mean, sum, max"):
        model(batch(0), "value", 1.0, "median")


TAKEN = ["weight_norm", "step", "module", "train/loss", "", "2nd"]


@pytest.mark.parametrize("name", TAKEN)
def test_a_name_that_is_taken_or_impossible_is_refused_and_training_can_go_on(
    name: str, watch: Watch
) -> None:
    model = made(Says)
    run = watch(model, probes={"linear": ["output_norm", "weight_norm"]})
    step_of(model, "fine", 1.0)
    with pytest.raises(nbp.QuantityError, match=r"collect|name"):
        model(batch(0), name, 2.0)
    step_of(model, "fine", 3.0)
    run.controls.settle()
    assert run.series("", "fine").values.tolist() == [1.0, 3.0]
    assert run.series("linear", "calls").values[0] == 1
    assert len(run.series("linear", "weight_norm")) == 2
    assert run.status().problem == ""


def test_a_name_may_come_in_any_step_and_at_any_module(watch: Watch) -> None:
    model = nn.ModuleDict({"a": Says(), "b": Says()})
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(4):
        place = "ab"[step % 2]
        model[place](batch(step), f"value_{step // 2}", step).sum().backward()
        optimizer.step()
    assert run.data.step.values.tolist() == [0, 1, 2, 3]
    assert run.series("a", "value_0").step.values.tolist() == [0]
    assert run.series("b", "value_0").step.values.tolist() == [1]
    assert run.series("a", "value_1").values.tolist() == [2.0]
    assert run.series("b", "value_1").values.tolist() == [3.0]
