"""Trainings from dicts: the same weights as by hand, of one model or of several."""

import copy
import logging
import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from notebook_probe.errors import (
    HookError,
    NanLossError,
    ParamError,
)
from notebook_probe.experiment import train, train_from_params
from notebook_probe.experiment.building.gradients import ByGradients
from tests.experiment.digits import BATCH, accuracy, digits, network, params, same, weights
from tests.experiment.units.trainings import DATA, built, by_hand, endless, losing, trained


def test_the_default_training_is_equal_bit_for_bit_to_one_by_hand() -> None:
    assert same(weights(trained().model), by_hand(12))


def test_minibatches_are_equal_bit_for_bit_to_accumulation_by_hand() -> None:
    training = trained(train_params={"minibatch_size": BATCH // 4, "num_steps": 7, **DATA})
    assert same(weights(training.model), by_hand(7, n_minibatches=4))


def test_rates_are_functions_of_the_step_and_any_optimizer_will_do() -> None:
    def rate(global_step: int, first: float) -> float:
        return first / (1 + global_step)

    training = trained(
        learning_rate_params={"func": rate, "first": 0.1},
        optimizer_params={"optimizer": torch.optim.Adam, "betas": (0.8, 0.9)},
    )
    torch.manual_seed(3)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, betas=(0.8, 0.9))
    for step, batch in zip(range(12), endless(digits(BATCH)), strict=False):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        optimizer.zero_grad()
        F.cross_entropy(model(batch["images"]), batch["labels"]).backward()
        optimizer.step()
    assert same(weights(training.model), weights(model))


def test_validating_and_telling_of_units_changes_no_bit() -> None:
    training = trained(
        train_params={"targets": {"func": accuracy}, "num_steps": 12, **DATA},
        save_params={"save_valid_freq": 3},
        validation_params={"test": {"data_params": DATA["data_params"]}},
    )
    assert same(weights(training.model), by_hand(12))
    assert {*training.trainer.results} == {"accuracy"}


class Descent:
    """Gradient descent that is no optimizer of torch, and counts its updates."""

    def __init__(self, params: list[tuple[str, Tensor]], lr: float) -> None:
        self.params, self.lr, self.n_updates = [value for _, value in params], lr, 0

    def compute_gradients(self, loss: Tensor) -> list[tuple[Tensor | None, Tensor]]:
        found = torch.autograd.grad(loss, self.params)
        return [*zip(found, self.params, strict=True)]

    def apply_gradients(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        self.n_updates += 1
        for gradient, value in pairs:
            value.sub_(gradient, alpha=self.lr)

    def state_dict(self) -> dict[str, int]:
        return {"n_updates": self.n_updates}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.n_updates = state["n_updates"]


@pytest.mark.parametrize("n_minibatches", [1, 4])
def test_whatever_computes_and_applies_gradients_is_an_optimizer(n_minibatches: int) -> None:
    plain = {"optimizer": torch.optim.SGD, "momentum": 0.0}
    rates = {"learning_rate": 0.1, "decay_rate": 0.9}
    trains = {"num_steps": 6, "minibatch_size": BATCH // n_minibatches, **DATA}
    given: dict[str, Any] = {"train_params": trains, "learning_rate_params": rates}
    own = trained(**given, optimizer_params={"optimizer": Descent})
    assert same(weights(own.model), weights(trained(**given, optimizer_params=plain).model))
    again = built(**given, optimizer_params={"optimizer": Descent})[0].trainer.optimizer
    again.load_state_dict(own.trainer.optimizer.state_dict())
    assert isinstance(again, ByGradients)
    assert again.state_dict()["made"] == {"n_updates": 6}


def test_only_parameters_under_the_scopes_are_trained() -> None:
    training = trained(model_params={"trainable_scopes": ["3."]})
    torch.manual_seed(3)
    fresh = network()
    after = dict(training.model.named_parameters())
    changed = [name for name, value in fresh.named_parameters() if not value.equal(after[name])]
    assert changed == ["3.weight", "3.bias"]
    with pytest.raises(ParamError, match="no parameter begins with 'conv'"):
        built(model_params={"trainable_scopes": "conv"})


# -------------------------------------------------------------------- several models


def fixed(batch_size: int) -> list[dict[str, Tensor]]:
    return [*digits(batch_size, shuffle=False)]


def test_each_of_several_models_trains_as_it_would_alone() -> None:
    data = {"func": fixed, "batch_size": BATCH}
    models = [{"func": network, "seed": seed, "width": 8 + seed} for seed in range(3)]
    units = [5, 9, 2]
    several = built(
        model_params=models,
        train_params=[
            {"data_params": {**data, "batch_size": BATCH * (1 + i)}, "num_steps": n,
             "minibatch_size": BATCH // 2}
            for i, n in enumerate(units)
        ],
    )  # fmt: skip
    assert train(several).ids == {"model_0": [], "model_1": [], "model_2": []}
    assert [one.loop.loop_step for one in several] == units
    for i, one in enumerate(several):
        alone = trained(
            model_params=models[i],
            train_params={
                "data_params": {**data, "batch_size": BATCH * (1 + i)},
                "num_steps": units[i],
                "minibatch_size": BATCH // 2,
            },
        )
        assert same(weights(one.model), weights(alone.model))


def test_an_error_of_one_model_names_it_and_the_others_train_to_their_ends() -> None:
    several = built(
        model_params=[{"func": network, "prefix": name} for name in ("good", "bad", "alike")],
        loss_params=[{}, losing(1.0, math.nan), {}],
        train_params={"data_params": {"func": fixed, "batch_size": BATCH}, "num_steps": 12},
    )
    ended: list[bool] = []
    for one in several:
        one.loop.on_close(lambda loop: ended.append(loop.run is None))
    with pytest.raises(NanLossError, match="unit 2") as raised:
        train(several)
    assert ended == [True, True, True]
    assert [one.loop.loop_step for one in several] == [12, 2, 12]
    (note,) = raised.value.__notes__
    assert note.startswith("bad ended at step 2 ")
    assert same(weights(several[0].model), weights(several[2].model))


# -------------------------------------------------------------------- what users do


def test_what_is_made_and_trained_later_is_equal_bit_for_bit() -> None:
    (later,) = built()
    torch.manual_seed(99)
    torch.rand(5)
    train([later])
    assert same(weights(later.model), by_hand(12))


def test_the_dicts_are_never_changed() -> None:
    given = params(loss_params={"pred_targets": ["labels"]}, optimizer_params={"clip": False})
    before = copy.deepcopy(given)
    train_from_params(**given)
    assert given == before


def test_errors_of_the_users_own_functions_are_told_as_they_are() -> None:
    def fails(inputs: Any, output: Any) -> Mapping[str, Any]:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        trained(train_params={"targets": {"func": fails}, **DATA})
    validation = {"data_params": DATA["data_params"], "targets": {"func": fails}}
    with pytest.raises(LookupError, match="mine"):
        trained(validation_params={"test": validation})


def test_a_hook_of_the_users_own_that_fails_is_told_by_its_name() -> None:
    (training,) = built()

    def mine(loop: Any, metrics: Any) -> None:
        raise LookupError("no")

    training.loop.on_step(mine)
    with pytest.raises(HookError, match="on_step hook 'mine': LookupError: no"):
        train([training])


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({"model_params": {"func": dict}}, "returned dict; a torch.nn.Module is expected"),
        ({"train_params": {"data_params": {"func": lambda: 3}}}, "returned int; an iterable"),
        ({"optimizer_params": {"optimizer": dict}}, "makes dict; a torch.optim.Optimizer"),
        ({"optimizer_params": {"lr": 0.1}}, "'lr'.*is set by learning_rate_params"),
        ({"model_params": {"func": network, "width": object()}}, "no record can hold"),
        ({"dont_run": 1}, "dont_run=1; allowed: True, False"),
    ],
)
def test_what_cannot_be_trained_is_refused_before(other: dict[str, Any], error: str) -> None:
    with pytest.raises(ParamError, match=error):
        train_from_params(**params(**other))


def test_a_model_may_be_made_of_the_first_batch_and_tell_its_configuration() -> None:
    def fitting(inputs: Mapping[str, Tensor], train: bool, seed: int) -> tuple[nn.Module, Any]:
        n_inputs = inputs["images"].shape[1]
        return nn.Linear(n_inputs, 10), {"n_inputs": n_inputs, "train": train, "seed": seed}

    training = trained(model_params={"func": fitting})
    assert training.config["model"]["cfg"] == {"n_inputs": 64, "train": True, "seed": 3}


def test_functions_are_told_with_their_versions_unless_that_is_left_out() -> None:
    linear = {"func": nn.Linear, "in_features": 64, "out_features": 10}
    (training,) = train_from_params(
        **{**params(model_params=linear), "skip_check": False}, dont_run=True
    )["trainings"]
    told = training.config["model"]["func"]
    assert (told["package"], told["version"]) == ("torch", torch.__version__)
    (training,) = built(model_params=linear)
    assert {*training.config["model"]["func"]} == {"module", "name"}


def test_the_devices_of_parameters_are_logged_where_that_is_asked_for() -> None:
    told: list[str] = []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    log = logging.getLogger("notebook_probe.experiment")
    log.addHandler(handler := Told())
    log.setLevel(logging.INFO)
    try:
        train_from_params(**params(), log_device_placement=True, dont_run=True)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    assert told[0] == "model_0: 0.weight is on cpu"
    assert len(told) == 4
