"""What a trainer and a loop are given: refused where it cannot train, and nothing else is."""

import math
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from notebook_probe.errors import DuplicateNameError, ScheduleError
from notebook_probe.train import Loop
from tests.train.conftest import a_loop, batches, small_model, trainer

SGD = torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)
"""Of another model."""


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"accumulate": 0}, ValueError, "accumulate=0; allowed: a whole number from 1"),
        ({"accumulate": True}, ValueError, "accumulate=True"),
        ({"clip": 0}, ValueError, "clip=0; allowed: a positive norm"),
        ({"clip": math.nan}, ValueError, "clip=nan"),
        ({"clip": 1.0, "on_nonfinite": "ignore"}, ValueError, "allowed: 'raise', 'skip'"),
        ({"max_executors": 0}, ValueError, "max_executors=0"),
        ({"loss_fn": 3}, TypeError, "loss_fn=3"),
        ({"loss_fn": nn.MSELoss}, TypeError, r"MSELoss: this is the class; .* by MSELoss\(\)"),
        ({"loss_fn": SGD}, TypeError, r"SGD, an optimizer: Trainer\(model, loss_fn, optimizer\)"),
        ({"optimizer": "adam"}, TypeError, "optimizer='adam'"),
        ({"optimizer": SGD}, ValueError, "SGD has no parameter of this Sequential, which it would"),
        ({"scheduler": 0.9}, TypeError, "scheduler=0.9: one of torch.optim.lr_scheduler"),
        ({"scheduler": ReduceLROnPlateau(SGD)}, TypeError, r"loop\.on_epoch.*loop\.register_state"),
        ({"train_metrics": [3]}, TypeError, "train_metrics: 'int' is 3; allowed: an object with"),
        ({"train_metrics": "accuracy"}, TypeError, "a list or a dict of metrics"),
        ({"eval_metrics": {"loss": len}}, DuplicateNameError, "'loss' is of the trainer's own"),
        ({"eval_metrics": [len, len]}, DuplicateNameError, "'len' is given twice"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        trainer(**options)


@pytest.mark.parametrize("loss", [3.0, np.float32(1)])
def test_a_loss_that_is_no_tensor_is_refused_with_what_was_returned(loss: object) -> None:
    loop = Loop(trainer(small_model(), loss_fn=lambda *_: cast("Any", loss)))
    with pytest.raises(TypeError, match=r"loss_fn returned \w+ .*; a tensor is expected"):
        loop.run_steps(batches(2), 1)


def test_an_optimizer_may_train_the_loss_alone_or_a_part_of_the_model() -> None:
    class Prototypes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = nn.Parameter(torch.ones(2))

        def forward(self, output: Any, label: Any) -> Any:
            return (output - self.places).square().sum(1).mean()

    loss = Prototypes()
    ours = trainer(small_model(), loss_fn=loss, optimizer=torch.optim.SGD(loss.parameters(), 0.1))
    assert ours.train_step_accumulated(batches(1)) is not None
    assert (loss.places != 1).all()
    model = small_model()
    part = trainer(model, optimizer=torch.optim.SGD(model[3].parameters(), 0.1))
    before = [value.clone() for value in model.parameters()]
    part.train_step_accumulated(batches(1))
    same_ones = [torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert same_ones == [True, True, False, False]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda loop: loop.run_epochs(3, batches(1)), "with n=list: a whole number"),
        (lambda loop: loop.run_epochs(batches(1), 2.5), "with n=2.5"),
        (lambda loop: loop.run_steps(batches(1), "3"), "run_steps.* with n='3'"),
        (lambda loop: loop.run_to_global_step(batches(1), None), "run_to_global_step.*n=NoneType"),
        (lambda loop: Loop(loop.trainer.model), r"Loop\(Sequential\): a Trainer\(model, ...\)"),
        (
            lambda loop: Loop(loop.trainer, progress=cast(Any, "x")),
            "^progress='x'; allowed: True, False, None$",
        ),
        (
            lambda loop: Loop(loop.trainer, cast(Any, batches(1))),
            "run=list.*data is given to run_steps",
        ),
    ],
)
def test_what_a_loop_cannot_take_is_refused_before_anything_is_touched(
    call: Callable[[Loop], Any], said: str
) -> None:
    loop = a_loop()
    with pytest.raises((TypeError, ValueError), match=said):
        call(loop)
    assert loop.run_epochs(batches(1), np.int64(1)) is not None  # type: ignore[arg-type]
    assert loop.loop_step == 1


def test_numbers_of_steps_and_contexts_of_another_kind_say_what_is_expected() -> None:
    loop = a_loop()
    with pytest.raises(TypeError, match=r"every_n_steps.* a whole number is expected first"):
        loop.every_n_steps(print, 10)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="times"):
        loop.eval_every(batches(1), "tims(5)")
    with pytest.raises(TypeError, match=r"set_context\(5\): a dict of hyperparameters"):
        loop.trainer.set_context(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda loop: loop.every_n_steps(0, print),
            "every_n_steps(n=0): the interval must be at least 1",
        ),
        (
            lambda loop: loop.n_times_during_loop(-1, print),
            "n_times_during_loop(n=-1): a number from 0 is expected",
        ),
        (
            lambda loop: loop.exponential_callback(10, 0.5, print),
            "exponential_callback(start=10, factor=0.5): "
            "a start from 1 and a factor above 1 are expected",
        ),
        (
            lambda loop: loop.periodic_callback("1 s", print),
            "periodic_callback(period='1 s'): a finite number is expected",
        ),
    ],
)
def test_an_impossible_interval_is_named_as_the_user_wrote_it(
    call: Callable[[Loop], Any], said: str
) -> None:
    with pytest.raises(ScheduleError, match=f"^{re.escape(said)}$"):
        call(a_loop())
