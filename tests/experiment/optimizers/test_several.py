"""Several optimizers that step as one."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam

from notebook_probe.experiment.optimizers import ClipOptimizer, MinibatchOptimizer
from tests.experiment.optimizers.networks import batches, loss_of, network, same, same_state, train


def ours(model: nn.Sequential, **options: Any) -> ClipOptimizer:
    params = [model[0].parameters(), model[2].parameters()]
    return ClipOptimizer([SGD, Adam], params, lr=[0.01, 0.1], clipping_method="norm", **options)


def test_each_class_has_its_own_parameters_and_rate_and_one_norm_is_of_all() -> None:
    mine, theirs = network(), network()
    train(mine, ours(mine), batches(4))
    sgd = SGD(theirs[0].parameters(), lr=0.01)
    adam = Adam(theirs[2].parameters(), lr=0.1)
    for batch in batches(4):
        theirs.zero_grad()
        loss_of(theirs, batch).backward()
        gradients = [value.grad for value in theirs.parameters() if value.grad is not None]
        norm = float(torch.stack([one.norm() for one in gradients]).norm())
        for one in gradients:
            one.mul_(1.0 / max(norm, 1.0))
        sgd.step()
        adam.step()
    assert same(mine, theirs)


def test_what_is_no_list_is_the_same_for_all() -> None:
    model = network()
    params = [model[0].parameters(), model[2].parameters()]
    optimizer = ClipOptimizer([SGD, SGD], params, lr=0.5, momentum=[0.1, 0.2])
    settings = [(group["lr"], group["momentum"]) for group in optimizer.param_groups]
    assert settings == [(0.5, 0.1), (0.5, 0.2)]


@pytest.mark.parametrize("rates", [[0.1], [0.1, 0.2, 0.3], []])
def test_lists_of_other_lengths_are_refused(rates: list[float]) -> None:
    model = network()
    params = [model[0].parameters(), model[2].parameters()]
    with pytest.raises(ValueError, match=f"lr is a list of {len(rates)} for 2"):
        ClipOptimizer([SGD, Adam], params, lr=rates)
    with pytest.raises(ValueError, match="a list of 2 parameters is expected"):
        MinibatchOptimizer([SGD, Adam], model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="is empty"):
        MinibatchOptimizer([], [], lr=0.1)


def test_the_state_goes_on_where_it_was() -> None:
    data, model = batches(6), network()
    optimizer = ours(model)
    train(model, optimizer, data[:3])
    state = copy.deepcopy(optimizer.state_dict())
    assert [len(group["params"]) for group in state["param_groups"]] == [2, 2]
    again = network(seed=1)
    again.load_state_dict(model.state_dict())
    other = ours(again)
    other.load_state_dict(state)
    assert same_state(other.state_dict(), state)
    train(model, optimizer, data[3:])
    train(again, other, data[3:])
    assert same(model, again)


def test_a_state_of_other_groups_is_refused() -> None:
    model = network()
    optimizer = ours(model)
    with pytest.raises(ValueError, match="1 groups of parameters, not 2"):
        optimizer.load_state_dict(SGD(model.parameters(), lr=0.1).state_dict())


def test_a_closure_is_called_once() -> None:
    mine, theirs, batch = network(), network(), batches(1)[0]
    train(theirs, ours(theirs), [batch])
    optimizer, calls = ours(mine), []

    def closure() -> torch.Tensor:
        calls.append(1)
        loss = loss_of(mine, batch)
        loss.backward()
        return loss

    with torch.no_grad():
        optimizer.step(closure)
    assert len(calls) == 1
    assert same(mine, theirs)


def test_names_choose_among_the_parameters_of_all() -> None:
    model = network()
    params = [model[0].named_parameters(prefix="0"), model[2].named_parameters(prefix="2")]
    optimizer = ClipOptimizer([SGD, SGD], params, lr=0.1, trainable_scope="bias")
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1]


def test_one_that_is_left_with_nothing_is_an_error() -> None:
    model = network()
    params = [model[0].named_parameters(prefix="0"), model[2].named_parameters(prefix="2")]
    with pytest.raises(ValueError, match=r"no parameter is left to train of 0\.weight, 0\.bias"):
        ClipOptimizer([SGD, SGD], params, lr=0.1, frozen_names=["0", "2.bias"])


def test_each_can_choose_its_own_of_all_parameters() -> None:
    model = network()
    named = [*model.named_parameters()]
    optimizer = ClipOptimizer([SGD, Adam], [named, named], lr=0.1, trainable_names=["0.", "2."])
    owned = [[*map(id, one.param_groups[0]["params"])] for one in optimizer.optimizers]
    assert owned == [[*map(id, model[i].parameters())] for i in (0, 2)]
    with pytest.raises(ValueError, match="trainable_names is a list of 1 for 2"):
        ClipOptimizer([SGD, Adam], [named, named], lr=0.1, trainable_names=["0."])


def test_two_that_would_train_the_same_parameter_are_an_error() -> None:
    named = [*network().named_parameters()]
    with pytest.raises(ValueError, match="two of which train the same parameter"):
        ClipOptimizer([SGD, Adam], [named, named], lr=0.1)


def test_clipping_optimizers_in_a_list_are_left_out_together() -> None:
    first, second = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def clipping(params: Any, lr: float) -> ClipOptimizer:
        return ClipOptimizer(SGD, params, lr=lr, clipping_method="norm", on_nonfinite="skip")

    optimizer = MinibatchOptimizer([clipping, clipping], [[first], [second]], lr=1.0)
    first.grad, second.grad = torch.ones(1), torch.tensor([torch.nan])
    optimizer.step()
    assert (first.item(), second.item(), optimizer.n_skipped) == (0.0, 0.0, 1)
