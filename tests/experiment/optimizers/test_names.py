"""Only parameters are trained whose names say so."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

from notebook_probe.experiment.optimizers import ClipOptimizer
from tests.experiment.optimizers.networks import batches, network, train


def trained_names(**options: Any) -> list[str]:
    model = network()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    train(model, ClipOptimizer(SGD, model.named_parameters(), lr=0.1, **options), batches(2))
    now = dict(model.named_parameters())
    return [name for name in before if not torch.equal(before[name], now[name])]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["0.weight", "0.bias", "2.weight", "2.bias"]),
        ({"trainable_names": "0."}, ["0.weight", "0.bias"]),
        ({"trainable_names": ["0.b", "2."]}, ["0.bias", "2.weight", "2.bias"]),
        ({"trainable_scope": "weight"}, ["0.weight", "2.weight"]),
        ({"trainable_scope": ["bias"], "trainable_names": "2"}, ["2.bias"]),
        ({"frozen_names": "0"}, ["2.weight", "2.bias"]),
        ({"frozen_names": ["0.weight"], "trainable_names": "0"}, ["0.bias"]),
    ],
)
def test_what_is_trained(options: dict[str, Any], expected: list[str]) -> None:
    assert trained_names(**options) == expected


@pytest.mark.parametrize("what", ["trainable_names", "trainable_scope", "frozen_names"])
def test_a_text_that_fits_no_parameter_is_an_error(what: str) -> None:
    with pytest.raises(ValueError, match=f"{what}: 'head' fits no parameter of 0.weight"):
        trained_names(**{what: ["0", "head"]})


def test_a_name_in_the_midst_begins_none() -> None:
    with pytest.raises(ValueError, match="trainable_names: 'weight'"):
        trained_names(trainable_names="weight")


def test_freezing_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="no parameter is left"):
        trained_names(frozen_names=["0", "2"])


def test_parameters_without_names_cannot_be_chosen() -> None:
    with pytest.raises(ValueError, match="named_parameters"):
        ClipOptimizer(SGD, network().parameters(), lr=0.1, trainable_names="0")


def test_groups_keep_their_options_and_empty_ones_are_left_out() -> None:
    model = network()
    groups = [
        {"params": model[0].named_parameters(prefix="0"), "lr": 0.5},
        {"params": model[2].named_parameters(prefix="2")},
    ]
    optimizer = ClipOptimizer(SGD, groups, lr=0.1, frozen_names="2")
    assert [group["lr"] for group in optimizer.param_groups] == [0.5]
    assert [id(value) for value in optimizer.param_groups[0]["params"]] == [
        *map(id, model[0].parameters())
    ]


def test_texts_are_texts() -> None:
    with pytest.raises(TypeError, match="text is expected"):
        trained_names(trainable_names=[0])


def test_a_module_gives_its_parameters_with_their_names() -> None:
    model = nn.ModuleDict({"body": nn.Linear(1, 1), "head": nn.Linear(1, 1)})
    optimizer = ClipOptimizer(SGD, model, lr=0.1, trainable_names="head")
    assert len(optimizer.param_groups[0]["params"]) == 2
