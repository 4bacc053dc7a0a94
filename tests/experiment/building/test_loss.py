"""Losses as their parameters say, and what is told of a unit beside."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from notebook_probe.errors import ParamError, UnknownNameError
from notebook_probe.experiment import train, train_from_params
from notebook_probe.experiment.building.loss import ExperimentLoss
from notebook_probe.experiment.building.results import checked, merged
from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LossParams
from notebook_probe.train import add_loss
from tests.experiment.digits import params

OUTPUTS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
BATCH = {"labels": torch.tensor([0, 1, 0]), "w": torch.tensor([1.0, 2.0, 3.0])}


def loss_of(**given: Any) -> Tensor:
    return ExperimentLoss(read(LossParams, given, "loss_params"))(OUTPUTS, BATCH)


def test_the_default_is_the_cross_entropy_of_each_case() -> None:
    logs = OUTPUTS.double().log_softmax(1)
    expected = -torch.stack([logs[0, 0], logs[1, 1], logs[2, 0]])
    torch.testing.assert_close(loss_of().double(), expected, atol=1e-6, rtol=0)


def test_a_loss_gets_its_targets_in_order_and_its_keywords() -> None:
    def weighted(outputs: Tensor, w: Tensor, labels: Tensor, scale: float) -> Tensor:
        return scale * w * F.cross_entropy(outputs, labels, reduction="none")

    found = loss_of(
        loss_func=weighted, pred_targets=["w", "labels"], loss_func_kwargs={"scale": 2.0}
    )
    torch.testing.assert_close(found, 2 * BATCH["w"] * loss_of())


def test_a_function_makes_one_number_of_the_losses_of_cases() -> None:
    given = {"agg_func": torch.sum, "agg_func_kwargs": {"dim": 0}}
    torch.testing.assert_close(loss_of(**given), loss_of().sum())


@pytest.mark.parametrize("agg_func", [None, lambda loss: loss[:2]])
def test_what_is_not_averaged_is_one_number(agg_func: Any) -> None:
    with pytest.raises(
        ParamError, match=r"'agg_func'\] leads to \([23],\); one number is expected"
    ):
        loss_of(agg_func=agg_func)
    assert loss_of(loss_func=F.cross_entropy, agg_func=None).ndim == 0


def test_a_target_that_no_batch_has_is_told_with_those_that_are_near() -> None:
    with pytest.raises(UnknownNameError, match="no 'label' in a batch; close: 'labels'"):
        loss_of(pred_targets="label")


@pytest.mark.parametrize(
    ("loss_params", "has_terms"),
    [({}, True), ({"agg_func": torch.mean}, False)],
    ids=["left out", "given"],
)
def test_terms_that_the_model_adds_belong_to_the_default(
    loss_params: dict[str, Any], has_terms: bool
) -> None:
    class Adds(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            add_loss(torch.tensor(50.0))
            return super().forward(input)

    found: list[float] = []

    def note(inputs: Any, output: Tensor) -> dict[str, Any]:
        return {}

    built = train_from_params(
        **params(
            model_params={"func": Adds, "in_features": 64, "out_features": 10},
            train_params={"num_steps": 1, "targets": {"func": note}},
            loss_params=loss_params,
        ),
        dont_run=True,
    )
    (training,) = built["trainings"]
    training.loop.on_step(lambda loop, metrics: found.append(metrics["loss"]))
    train(**built)
    assert (found[0] > 50) == has_terms


@pytest.mark.parametrize("name", ["loss", "__grads__", "optimizer", "learning_rate"])
def test_names_of_the_training_itself_are_no_results(name: str) -> None:
    with pytest.raises(ParamError, match=f"targets gave '{name}', which is reserved"):
        checked({name: 1}, "targets")


@pytest.mark.parametrize("found", [None, 3, [("a", 1)], torch.ones(1)])
def test_what_is_no_dict_is_no_result(found: object) -> None:
    with pytest.raises(ParamError, match="a dict is expected"):
        checked(found, "targets")


def test_results_of_minibatches_are_those_of_one_batch() -> None:
    one = {"mean": torch.tensor(1.0), "ids": torch.tensor([1, 2]), "n": 2, "text": "a"}
    other = {"mean": torch.tensor(2.0), "ids": torch.tensor([3]), "n": 3, "text": "b"}
    found = merged([one, other])
    assert found["mean"].item() == 1.5
    assert found["ids"].tolist() == [1, 2, 3]
    assert (found["n"], found["text"]) == (2.5, ["a", "b"])
    assert merged([{"x": np.ones(2)}, {}])["x"].tolist() == [1.0, 1.0]
    assert merged([one]) == one
