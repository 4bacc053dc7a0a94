"""Parameters that are replaced while a model trains: what is there is read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Optimizer

from notebook_probe.model.map import ModelMap
from tests.models import floats, loss_of, made, mlp
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)
N, AT = 8, 3


def new_head(model: nn.Module) -> None:
    model.set_submodule("2", made(lambda: nn.Linear(8, 2), seed=5))


def new_weight(model: nn.Module) -> None:
    model.get_submodule("2").weight = nn.Parameter(torch.full((2, 8), 0.25))


def assigned(model: nn.Module) -> None:
    state = {name: 2 * value for name, value in model.get_submodule("2").state_dict().items()}
    model.get_submodule("2").load_state_dict(state, assign=True)


def step(model: nn.Module, optimizer: Optimizer, number: int) -> None:
    optimizer.zero_grad()
    loss_of(model(batch(number))).backward()
    optimizer.step()


@pytest.mark.parametrize("replace", [new_head, new_weight, assigned])
def test_what_the_optimizer_does_not_hold_has_a_weight_and_no_gradient(
    replace: Callable[[nn.Module], None], watch: Watch
) -> None:
    """Until it is told of it; the weight is that of the forward all the while."""
    model = made(mlp)
    optimizer = SGD(model.parameters(), lr=0.1)
    run = watch(
        model, probes={("0", "2"): ["weight_norm"], ("0.weight", "2.weight"): ["grad_norm"]}
    )
    weights: list[float] = []
    for number in range(N):
        if number == AT:
            replace(model)
        if number == AT + 3:
            optimizer = SGD(model.parameters(), lr=0.1)
        weights.append(norm_of(model.get_parameter("2.weight")))
        step(model, optimizer, number)
    run.controls.settle()
    np.testing.assert_allclose(run.data.weight_norm.sel(module="2"), weights, rtol=1e-5)
    held = run.data.grad_norm.sel(module="2.weight").notnull().values.tolist()
    assert held == [True] * AT + [False] * 3 + [True] * (N - AT - 3)
    assert run.data.grad_norm.sel(module="0.weight").notnull().all()


def test_a_window_forgets_a_parameter_that_is_gone(watch: Watch) -> None:
    """How far the new head has come is the way from where it began."""
    model = made(mlp)
    run = watch(model, probes={"2": ["distance_from_init"]})
    wanted, first = [], model.get_parameter("2.weight").detach().clone()
    for number in range(N):
        if number == AT:
            new_head(model)
            first = model.get_parameter("2.weight").detach().clone()
        if number in (0, AT):
            optimizer = SGD(model.parameters(), lr=0.1)
        wanted.append(norm_of(model.get_parameter("2.weight") - first))
        step(model, optimizer, number)
    run.controls.settle()
    found = run.data.distance_from_init.sel(module="2")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
def test_each_kept_part_of_a_layer_is_known_by_the_weight_that_is_used() -> None:
    model = nn.Sequential(nn.LSTM(3, 4), nn.Linear(4, 2))
    nn.utils.weight_norm(model[0], "weight_hh_l0")
    nn.utils.prune.l1_unstructured(model[1], "bias", 1)
    model_map = ModelMap(model)
    assert [slot.name for slot in model_map.weights("0")] == [
        "weight_ih_l0",
        "bias_ih_l0",
        "bias_hh_l0",
        "weight_hh_l0",
    ]
    assert [slot.name for slot in model_map.slots("1", below=True)] == ["weight", "bias_orig"]
    names = [slot.name for slot in model_map.weights("1", below=True)]
    assert names == ["weight", "bias"]
    values = [slot.get() for slot in model_map.weights("1", below=True)]
    assert values[1] is not None
    used: Any = model.get_submodule("1").bias
    assert torch.equal(values[1], used)
