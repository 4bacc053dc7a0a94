"""Units of a training from dicts: their order, their losses, and loops of one's own."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.errors import (
    HiLossError,
    NanLossError,
    NoChangeError,
    ParamError,
    TrainingError,
)
from notebook_probe.experiment import train
from notebook_probe.experiment.validation import mean_dict
from tests.experiment.digits import BATCH, accuracy, digits, same, weights
from tests.experiment.units.trainings import DATA, built, by_hand, losing, trained


def test_a_training_of_no_end_is_ended_by_a_hook() -> None:
    (training,) = built(train_params={"num_steps": None, **DATA})
    training.loop.on_step(lambda loop, metrics: loop.stop() if loop.n_updates == 5 else None)
    train([training])
    assert (training.loop.loop_step, training.loop.end_step) == (5, -1)


def test_what_was_trained_far_enough_is_trained_no_more() -> None:
    training = trained()
    before = weights(training.model)
    assert train([training]) == ({"model_0": {}}, {"model_0": []})
    assert training.loop.loop_step == 12
    assert same(weights(training.model), before)


@pytest.mark.parametrize(
    ("third", "error"),
    [
        (math.nan, NanLossError),
        (100.5, HiLossError),
        (math.inf, HiLossError),
        (100.0, None),
        (-math.inf, None),
        (-1e30, None),
    ],
)
def test_a_loss_is_a_number_and_not_above_the_threshold(
    third: float, error: type[Exception] | None
) -> None:
    (training,) = built(
        loss_params=losing(1.0, 2.0, third, 3.0), train_params={"num_steps": 4, **DATA}
    )
    if error is None:
        train([training])
        assert training.loop.loop_step == 4
        return
    with pytest.raises(error, match="unit 3: the loss"):
        train([training])
    assert training.loop.loop_step == 3


def test_the_order_of_a_training_is_that_of_a_list() -> None:
    events: list[str] = []

    def batches(batch_size: int) -> list[dict[str, Tensor]]:
        return [*digits(batch_size, shuffle=False)]

    def targets(inputs: Any, output: Tensor) -> dict[str, float]:
        events.append("train")
        return {}

    def validate(inputs: Any, output: Tensor) -> dict[str, float]:
        events.append("validate")
        return {"loss": 0.0}

    (training,) = built(
        save_params={"save_valid_freq": 2},
        train_params={"num_steps": 5, "targets": {"func": targets}, **DATA},
        validation_params={
            name: {
                "data_params": {"func": batches, "batch_size": BATCH},
                "targets": {"func": validate},
                "num_steps": n,
            }
            for name, n in (("one", 1), ("two", 2))
        },
    )
    for method in ("begin", "results", "validated", "unit", "end"):
        tell(training.saver, method, events)
    train([training])
    validated = ["validate"] * 3 + ["validated"]
    expected = ["begin", *validated]
    for k in range(1, 6):
        expected += ["train", "results", *(validated if k % 2 == 0 else []), "unit"]
    assert events == [*expected, "end"]


def test_its_results_are_those_of_the_last_validation() -> None:
    found: list[float] = []

    def validate(inputs: Any, output: Tensor) -> dict[str, float]:
        found.append(float(F.cross_entropy(output, inputs["labels"])))
        return {"entropy": found[-1]}

    validation = {**DATA, "targets": {"func": validate}, "num_steps": 1, "agg_func": mean_dict}
    training = built(
        save_params={"save_valid_freq": 2},
        train_params={"num_steps": 5, **DATA},
        validation_params={"test": validation},
    )
    results, ids = train(training)
    assert len(found) == 3  # the states 0, 2 and 4
    assert results == {"model_0": {"test": {"entropy": found[-1]}}}
    assert ids == {"model_0": []}


def tell(saver: Any, method: str, events: list[str]) -> None:
    own = getattr(saver, method)

    def called(*args: Any, **kwargs: Any) -> Any:
        events.append(method)
        return own(*args, **kwargs)

    setattr(saver, method, called)


def test_state_0_is_validated_only_where_that_is_wanted() -> None:
    calls: list[int] = []

    def validate(inputs: Any, output: Tensor) -> dict[str, float]:
        calls.append(1)
        return {}

    for first in (True, False):
        trained(
            train_params={"num_steps": 1, "validate_first": first, **DATA},
            validation_params={
                "one": {**DATA, "targets": {"func": validate}, "num_steps": 1},
            },
        )
        assert len(calls) == 1


def test_an_update_that_the_optimizer_leaves_out_is_no_unit() -> None:
    def loss(outputs: Tensor, labels: Tensor, factors: Iterator[float]) -> Tensor:
        return F.cross_entropy(outputs, labels) * next(factors)

    clip = {"optimizer": nbp.ClipOptimizer, "optimizer_class": torch.optim.SGD}
    factors = iter([1.0, 1.0, math.inf, *[1.0] * 9])
    training = trained(
        loss_params={"loss_func": lambda outputs, labels: loss(outputs, labels, factors)},
        optimizer_params={**clip, "clipping_method": "norm", "on_nonfinite": "skip"},
        train_params={"num_steps": 6, **DATA},
    )
    assert (training.loop.loop_step, training.loop.skipped_steps) == (6, 1)
    assert [*factors] == [1.0] * 5


# -------------------------------------------------------------------- loops of one's own


def test_a_loop_of_ones_own_trains_a_unit_by_its_step() -> None:
    seen: list[int] = []

    def loop(step: Any, batches: list[Any], num_minibatches: int, scale: float) -> dict[str, Any]:
        seen.append(num_minibatches)
        found = step(batches)
        return {"loss": found["loss"] * scale, "twice": 2 * found["accuracy"]}

    training = trained(
        train_params={
            "num_steps": 7,
            "minibatch_size": BATCH // 4,
            "targets": {"func": accuracy},
            "train_loop": {"func": loop, "scale": 0.5},
            **DATA,
        }
    )
    assert same(weights(training.model), by_hand(7, n_minibatches=4))
    assert seen == [4] * 7
    assert {*training.trainer.results} == {"twice"}


def test_a_unit_without_an_update_is_an_error() -> None:
    with pytest.raises(NoChangeError, match="unit 1: train_loop"):
        trained(train_params={"train_loop": {"func": lambda step, batches, **_: {}}, **DATA})


@pytest.mark.parametrize(
    ("loop", "error", "text"),
    [
        (lambda step, batches, **_: [step(batches), step(batches)], TrainingError, "twice"),
        (lambda step, batches, **_: step(batches)["loss"], ParamError, "a dict with 'loss'"),
        (lambda step, batches, **_: {**step(batches), "optimizer": 1}, ParamError, "reserved"),
    ],
)
def test_a_loop_of_ones_own_updates_once_and_returns_a_dict(
    loop: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        trained(train_params={"train_loop": {"func": loop}, **DATA})
