"""Optimizers that are named in the dicts of an experiment."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from notebook_probe.experiment import train, train_from_params
from notebook_probe.experiment.optimizers import ClipOptimizer, MinibatchOptimizer
from tests.experiment.optimizers.networks import batches as pairs
from tests.experiment.optimizers.networks import loss_of, network, same


@pytest.fixture(autouse=True)
def at_home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEBOOK_PROBE_HOME", str(tmp_path))


def batches(batch_size: int, bad: int = -1) -> list[dict[str, Tensor]]:
    made = [{"x": x, "labels": y} for x, y in pairs(12, batch_size)]
    if bad >= 0:
        made[bad]["x"][0, 0] = torch.nan
    return made


def a_network(seed: int) -> nn.Module:
    return network(seed)


def squares(output: Tensor, labels: Tensor) -> Tensor:
    return (output - labels).pow(2).sum()


def trained(num_steps: int, bad: int = -1, minibatch_size: int = 4, **optimizer: Any) -> Any:
    built = train_from_params(
        save_params={"exp_id": "one", "do_save": False},
        model_params={"func": a_network},
        train_params={
            "data_params": {"func": batches, "batch_size": 8, "bad": bad},
            "num_steps": num_steps,
            "minibatch_size": minibatch_size,
            "thres_loss": 1e9,
        },
        loss_params={"loss_func": squares, "agg_func": None},
        learning_rate_params={"learning_rate": 0.01},
        optimizer_params=optimizer,
        skip_check=True,
        dont_run=True,
    )
    train(**built)
    return built["trainings"][0]


@pytest.mark.parametrize("each", [False, True])
def test_a_batch_in_minibatches_is_one_update_as_by_hand(each: bool) -> None:
    training = trained(
        4,
        optimizer=MinibatchOptimizer,
        optimizer_class=SGD,
        momentum=0.9,
        clipping_value=0.5,
        clip_each_minibatch=each,
    )
    model = network()
    optimizer = SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = pairs(8, 4)
    for i in range(0, 8, 2):
        sums = [torch.zeros_like(value) for value in model.parameters()]
        for batch in data[i : i + 2]:
            found = torch.autograd.grad(loss_of(model, batch), [*model.parameters()])
            for whole, part in zip(sums, found, strict=True):
                whole += (part.clamp(-0.5, 0.5) if each else part) / 2
        for value, whole in zip(model.parameters(), sums, strict=True):
            value.grad = whole if each else whole.clamp(-0.5, 0.5)
        optimizer.step()
    assert training.loop.n_updates == 4
    assert same(training.model, model)


def test_a_unit_that_is_left_out_is_none_and_no_error() -> None:
    training = trained(
        5,
        bad=2,
        minibatch_size=8,
        optimizer=ClipOptimizer,
        optimizer_class=SGD,
        clipping_method="norm",
        on_nonfinite="skip",
    )
    assert (training.loop.n_updates, training.loop.skipped_steps) == (5, 1)
    assert training.trainer.optimizer.n_skipped == 1
    assert all(bool(value.isfinite().all()) for value in training.model.parameters())


def test_several_classes_choose_their_parameters_by_name() -> None:
    training = trained(
        2,
        optimizer=ClipOptimizer,
        optimizer_class=[SGD, Adam],
        trainable_names=["0.", "2."],
    )
    kinds = [type(one) for one in training.trainer.optimizer.optimizers]
    assert kinds == [SGD, Adam]
    fresh = network()
    pairs_of = zip(training.model.parameters(), fresh.parameters(), strict=True)
    assert not any(torch.equal(one, other) for one, other in pairs_of)
