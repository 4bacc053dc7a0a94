"""Trainings from dicts that are saved: what is left, and going on from it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.experiment import train
from notebook_probe.experiment.building.training import TrainedModel
from notebook_probe.experiment.validation import mean_dict
from tests.experiment.digits import BATCH, accuracy, digits, network, params, same, weights

DATA: dict[str, Any] = {"data_params": {"func": digits, "batch_size": BATCH}}
SAVED: dict[str, Any] = {
    "do_save": True,
    "save_metrics_freq": 4,
    "save_valid_freq": 6,
    "save_filters_freq": 12,
    "cache_filters_freq": 5,
}


def built(n_units: int = 15, **other: Any) -> tuple[TrainedModel, ...]:
    given = {
        "save_params": SAVED,
        "train_params": {"num_steps": n_units, "targets": {"func": accuracy}, **DATA},
        "validation_params": {
            "test": {**DATA, "targets": {"func": accuracy}, "num_steps": 2, "agg_func": mean_dict}
        },
        **other,
    }
    return nbp.train_from_params(**params(**given), dont_run=True)["trainings"]


def units(ids: list[str]) -> list[int]:
    (run,) = {one.rpartition(":")[0] for one in ids}
    assert run
    return [int(one.rpartition(":")[2]) for one in ids]


@pytest.mark.slow
def test_the_ids_are_those_of_the_units_that_are_due_and_of_the_tail(home: Path) -> None:
    ids = train(built()).ids
    due = [k for k in range(1, 16) if any(k % every == 0 for every in (4, 6, 12, 5))]
    assert units(ids["model_0"]) == [0, *due]
    assert units(train(built(17)).ids["model_0"]) == [16, 17]


@pytest.mark.slow
def test_a_training_that_goes_on_is_equal_bit_for_bit_to_one_that_never_stopped() -> None:
    (whole,) = built(save_params={**SAVED, "exp_id": "whole"})
    train([whole])
    train(built(7))
    (rest,) = built()
    train([rest])
    assert same(weights(rest.model), weights(whole.model))
    one, other = (nbp.open_run(str(one.place.record)) for one in (whole, rest))
    for name in ("loss", "accuracy", "learning_rate", "valid_test_accuracy"):
        assert (
            one.series("", name).drop_vars("time").equals(other.series("", name).drop_vars("time"))
        )


@pytest.mark.slow
def test_the_record_holds_every_unit_and_the_dicts(home: Path) -> None:
    (training,) = built(model_params={"func": network, "width": 8})
    train([training])
    run = nbp.open_run(str(home / "experiments" / "digits" / "record.zarr"))
    for name in ("loss", "accuracy", "learning_rate"):
        assert run.series("", name).dropna("step").step.values.tolist() == [*range(15)]
    states = run.series("", "valid_test_accuracy").dropna("step").step.values.tolist()
    assert states == [0, 6, 12]
    model = run.config["model"]
    assert (model["width"], model["seed"]) == (8, 3)
    assert model["func"] == {"module": "tests.experiment.digits", "name": "network"}
    assert run.config["train"]["num_steps"] == 15
    assert run.config["learning_rate"]["func"]["name"] == "exponential_decay"
    assert run.config["optimizer"]["optimizer"]["name"] == "ClipOptimizer"


def test_what_was_trained_before_an_error_is_kept(home: Path) -> None:
    values = iter([*[1.0] * 6, math.nan])

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return outputs.mean() * 0 + next(values)

    (training,) = built(loss_params={"loss_func": loss}, validation_params={})
    with pytest.raises(nbp.NanLossError, match="unit 7"):
        train([training])
    losses = nbp.open_run(str(training.place.record)).series("", "loss").values
    assert losses[:6].tolist() == [1.0] * 6
    assert math.isnan(losses[6])
    assert units(training.saver.record_ids)[-1] == 7
    assert training.loop.run is not None
    assert training.loop.run.closed


@pytest.mark.slow
def test_what_was_trained_before_a_stop_is_kept_and_gone_on_from() -> None:
    (training,) = built(save_params={**SAVED, "cache_filters_freq": 1})
    training.loop.on_step(lambda loop, metrics: loop.stop() if loop.n_updates == 7 else None)
    assert units(train([training]).ids["model_0"]) == [*range(8)]
    (rest,) = built(save_params={**SAVED, "cache_filters_freq": 1})
    assert units(train([rest]).ids["model_0"]) == [*range(8, 16)]


@pytest.mark.slow
def test_several_models_are_saved_in_places_of_their_own_and_go_on_by_themselves() -> None:
    models = [{"func": network, "width": width, "prefix": f"w{width}"} for width in (4, 8)]

    def several(*n_units: int) -> tuple[TrainedModel, ...]:
        trains = [{"num_steps": n, **DATA} for n in n_units]
        return built(model_params=models, train_params=trains)

    assert {name: units(ids)[-1] for name, ids in train(several(5, 9)).ids.items()} == {
        "w4": 5,
        "w8": 9,
    }
    whole = several(12, 12)
    assert [one.place.folder.name for one in whole] == ["digits_w4", "digits_w8"]
    assert {name: units(ids)[-1] for name, ids in train(whole).ids.items()} == {"w4": 12, "w8": 12}
    assert train(several(12, 12)).ids == {"w4": [], "w8": []}


def test_nothing_is_written_where_nothing_is_to_be_saved(home: Path) -> None:
    assert train(built(save_params={**SAVED, "do_save": False})).ids == {"model_0": []}
    assert not home.exists()


def test_what_is_only_made_writes_nothing(home: Path) -> None:
    built()
    assert not home.exists()


@pytest.mark.slow
def test_a_model_takes_weights_of_another_experiment_to_begin_with() -> None:
    (first,) = built()
    train([first])
    (second,) = built(
        1,
        save_params={**SAVED, "exp_id": "second", "save_initial_filters": False},
        load_params={"exp_id": "digits", "to_restore": ["0.weight"], "restore_global_step": False},
        model_params={"func": network, "seed": 8, "trainable_scopes": ["3"]},
    )
    train([second])
    torch.manual_seed(8)
    fresh = network()
    assert isinstance(second.model, nn.Sequential)
    after = dict(second.model.named_parameters())
    assert after["0.weight"].equal(dict(first.model.named_parameters())["0.weight"])
    assert after["0.bias"].equal(dict(fresh.named_parameters())["0.bias"])
