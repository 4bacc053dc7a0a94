"""Learning rates as functions of the step."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.optim import SGD, Adam

from notebook_probe.experiment.learning_rates import LearningRate, exponential_decay
from notebook_probe.experiment.optimizers import ClipOptimizer
from notebook_probe.train import Loop, Trainer
from tests.experiment.optimizers.networks import batches, network, same


@given(st.integers(0, 1000), st.floats(1e-6, 1), st.integers(1, 100), st.floats(0.5, 1))
def test_it_decays_by_a_factor_every_so_many_steps(
    step: int, rate: float, decay_steps: int, decay_rate: float
) -> None:
    found = exponential_decay(step, rate, decay_steps, decay_rate)
    assert found == pytest.approx(rate * np.exp(np.log(decay_rate) * step / decay_steps))
    stairs = [
        exponential_decay(k * decay_steps + k % decay_steps, rate, decay_steps, decay_rate, True)
        for k in range(4)
    ]
    assert stairs == pytest.approx([rate * decay_rate**k for k in range(4)])


def test_without_arguments_it_stays() -> None:
    assert [exponential_decay(step) for step in (0, 1, 100)] == [0.01] * 3
    with pytest.raises(ValueError, match="decay_steps=0"):
        exponential_decay(1, decay_steps=0)


def line(global_step: int, start: float = 1.0) -> float:
    return start / (1 + global_step)


def a_loop(func: Any = line, **rest: Any) -> tuple[Loop, LearningRate]:
    model = network()
    optimizer = ClipOptimizer(SGD, model, lr=0.7)
    rate = LearningRate(optimizer, func, **rest)
    loop = Loop(Trainer(model, nn.functional.mse_loss, optimizer, scheduler=rate))
    loop.add(rate)
    return loop, rate


def test_each_update_uses_the_rate_of_its_step_and_the_loop_logs_it(tmp_path: Path) -> None:
    loop, _ = a_loop(start=0.1)
    used: list[float] = []
    loop.trainer.optimizer.register_step_pre_hook(
        lambda optimizer, *_: used.append(optimizer.param_groups[0]["lr"])
    )
    with loop.watch(store=tmp_path / "run.zarr", probes=None) as run:
        loop.run_steps(batches(4), 4)
        run.flush()
        logged = run.data["learning_rate"].values.ravel()
    assert used == [0.1 / (1 + k) for k in range(4)]
    assert np.allclose(logged, used)
    assert loop.last_metrics["learning_rate"] == used[-1]


def test_it_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    (whole, _), (first, _), (second, rate) = a_loop(), a_loop(), a_loop()
    data = batches(6)
    whole.run_steps(data, 6)
    first.run_steps(data, 3)
    first.save_checkpoint(tmp_path)
    second.load_checkpoint(tmp_path)
    assert rate.state_dict() == {"global_step": 3}
    assert second.trainer.optimizer.param_groups[0]["lr"] == line(3)
    second.run_steps(data, 3)
    assert same(whole.trainer.model, second.trainer.model)


def test_several_optimizers_have_rates_of_their_own() -> None:
    model = network()
    params = [model[0].parameters(), model[2].parameters()]
    optimizer = ClipOptimizer([SGD, Adam], params, lr=[0.1, 0.2])
    rate = LearningRate(optimizer, lambda global_step: [0.3, line(global_step)])
    loop = Loop(Trainer(model, nn.functional.mse_loss, optimizer, scheduler=rate))
    loop.add(rate)
    loop.run_steps(batches(2), 2)
    assert rate.get_last_lr() == [0.3, line(2)]
    assert (loop.last_metrics["learning_rate_0"], loop.last_metrics["learning_rate_1"]) == (
        0.3,
        0.5,
    )
    with pytest.raises(ValueError, match="3 learning rates for 2 groups"):
        LearningRate(optimizer, lambda global_step: [0.1, 0.2, 0.3])


@pytest.mark.parametrize("bad", [math.nan, -0.1, math.inf])
def test_what_is_no_rate_raises(bad: float) -> None:
    def worst(global_step: int) -> float:
        return bad

    with pytest.raises(ValueError, match=r"worst\(global_step=0\) is .*: no learning rate"):
        a_loop(worst)


def test_a_rate_in_a_tensor_stays_there() -> None:
    held = torch.tensor(0.5)
    optimizer = Adam([nn.Parameter(torch.zeros(1))], lr=held, foreach=False)
    LearningRate(optimizer, line).step()
    assert optimizer.param_groups[0]["lr"] is held
    assert held.item() == 0.5


def test_a_key_that_the_function_does_not_take_is_named_with_close_ones() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    with pytest.raises(TypeError, match="exponential_decay takes no 'decay_step'; close: 'd"):
        LearningRate(optimizer, exponential_decay, decay_step=3)
    LearningRate(optimizer, lambda global_step, **any_other: 0.1, decay_step=3)
