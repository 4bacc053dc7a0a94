"""Gradients of minibatches are summed, and applied once, as by hand in torch."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from notebook_probe.errors import NonFiniteGradientError
from notebook_probe.experiment.optimizers import (
    ClipOptimizer,
    MinibatchOptimizer,
    num_minibatches,
)
from notebook_probe.train import Trainer
from tests.experiment.optimizers.networks import batches, loss_of, network, same


def gradients(model: nn.Module, batch: Any) -> list[Tensor]:
    return [*torch.autograd.grad(loss_of(model, batch), [*model.parameters()])]


def clipped(values: list[Tensor], limit: float) -> list[Tensor]:
    norm = float(torch.stack([one.norm() for one in values]).norm())
    return [one * (limit / norm) for one in values] if norm > limit else values


def by_hand(k: int, n_groups: int, limit: float | None, each: bool) -> nn.Module:
    model = network()
    optimizer, data = AdamW(model.parameters(), lr=0.01), batches(k * n_groups)
    for i in range(n_groups):
        sums: list[Tensor] | None = None
        for batch in data[i * k : (i + 1) * k]:
            own = gradients(model, batch)
            own = clipped(own, limit) if limit is not None and each else own
            parts = [one / k for one in own]
            sums = parts if sums is None else [a + b for a, b in zip(sums, parts, strict=True)]
        assert sums is not None
        final = clipped(sums, limit) if limit is not None and not each else sums
        for parameter, gradient in zip(model.parameters(), final, strict=True):
            parameter.grad = gradient
        optimizer.step()
    return model


def with_ours(k: int, n_groups: int, limit: float | None, each: bool) -> nn.Module:
    model = network()
    inside: Optimizer = AdamW(model.parameters(), lr=0.01)
    if limit is not None:
        inside = ClipOptimizer(inside, clipping_method="norm", clipping_value=limit)
    optimizer, data = MinibatchOptimizer(inside, clip_each_minibatch=each), batches(k * n_groups)
    for i in range(n_groups):
        for batch in data[i * k : (i + 1) * k]:
            loss_of(model, batch).backward()
            optimizer.accumulate_gradients(k)
        optimizer.step()
        assert all(value.grad is None for value in model.parameters())  # then zero
    return model


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("limit", "each"), [(None, False), (0.5, False), (0.5, True)])
def test_a_group_is_one_update_as_by_hand(k: int, limit: float | None, each: bool) -> None:
    assert same(with_ours(k, 4, limit, each), by_hand(k, 4, limit, each))


def test_clipping_the_mean_and_clipping_each_are_not_the_same() -> None:
    assert not same(with_ours(3, 4, 0.5, False), with_ours(3, 4, 0.5, True))


def test_gradients_can_be_handed_in() -> None:
    model, expected = network(), by_hand(2, 1, None, False)
    optimizer = MinibatchOptimizer(AdamW, model, lr=0.01)
    for batch in batches(2):
        optimizer.accumulate_gradients(2, gradients(model, batch))
    optimizer.step()
    assert same(model, expected)


def test_without_minibatches_it_steps_as_the_optimizer_inside() -> None:
    mine, theirs = network(), network()
    optimizers = MinibatchOptimizer(SGD, mine, lr=0.01), SGD(theirs.parameters(), lr=0.01)
    for model, optimizer in zip((mine, theirs), optimizers, strict=True):
        loss_of(model, batches(1)[0]).backward()
        optimizer.step()
    assert same(mine, theirs)


def test_the_last_minibatch_leaves_the_sum_where_a_scaler_looks_for_it() -> None:
    model = network()
    optimizer = MinibatchOptimizer(SGD, model, lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for batch in batches(2):
        scaler.scale(loss_of(model, batch)).backward()
        optimizer.accumulate_gradients(2)
    scaler.step(optimizer)
    scaler.update()
    theirs = network()
    for batch in batches(2):
        (loss_of(theirs, batch) / 2).backward()
    SGD(theirs.parameters(), lr=0.01).step()
    assert same(model, theirs)  # by powers of two, which are exact


def test_a_parameter_without_a_gradient_stays_so() -> None:
    used, unused = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = MinibatchOptimizer(AdamW, [used, unused], lr=0.1, weight_decay=0.5)
    for _ in range(2):
        used.sum().backward()
        optimizer.accumulate_gradients(2)
    optimizer.step()
    assert unused.item() == 1.0 != used.item()


def test_a_minibatch_that_is_not_finite_leaves_the_whole_group_out() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    inside = ClipOptimizer(
        SGD, [parameter], lr=1.0, clipping_method="norm", on_nonfinite="skip", clipping_value=9.0
    )
    optimizer = MinibatchOptimizer(inside, clip_each_minibatch=True)
    for value in (math.nan, 1.0):
        optimizer.accumulate_gradients(2, [torch.tensor([value])])
    optimizer.step()
    assert (parameter.item(), optimizer.n_skipped) == (0.0, 1)
    for value in (1.0, 3.0):
        optimizer.accumulate_gradients(2, [torch.tensor([value])])
    optimizer.step()
    assert (parameter.item(), optimizer.n_skipped) == (-2.0, 1)


def test_a_mean_that_is_not_finite_raises_unless_it_is_left_out() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = MinibatchOptimizer(ClipOptimizer(SGD, [parameter], lr=1.0, clipping_method="norm"))
    for value in (1.0, math.inf):
        optimizer.accumulate_gradients(2, [torch.tensor([value])])
    with pytest.raises(NonFiniteGradientError):
        optimizer.step()


def test_parameter_lists_must_agree() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = MinibatchOptimizer(SGD, [parameter], lr=1.0)
    with pytest.raises(ValueError, match="2 gradients for 1 parameters"):
        optimizer.accumulate_gradients(2, [torch.ones(1), torch.ones(1)])
    optimizer.zero_grad()
    optimizer.accumulate_gradients(2, [torch.ones(1)])
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    with pytest.raises(ValueError, match="2 parameters, which are not the 1"):
        optimizer.accumulate_gradients(2)


def test_a_group_is_whole_or_an_error() -> None:
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = MinibatchOptimizer(SGD, [parameter], lr=1.0)
    optimizer.accumulate_gradients(3, [torch.ones(1)])
    with pytest.raises(ValueError, match="after 1 of 3 minibatches"):
        optimizer.step()
    with pytest.raises(ValueError, match="in a group of 3"):
        optimizer.accumulate_gradients(2, [torch.ones(1)])
    optimizer.zero_grad()
    optimizer.accumulate_gradients(1, [torch.ones(1)])
    with pytest.raises(ValueError, match="minibatch 2 of 1"):
        optimizer.accumulate_gradients(1, [torch.ones(1)])
    for bad in (0, True, 1.0):
        with pytest.raises(ValueError, match="a whole number from 1"):
            optimizer.accumulate_gradients(bad)  # type: ignore[arg-type]


def test_clipping_each_needs_something_that_clips() -> None:
    with pytest.raises(ValueError, match="no ClipOptimizer that clips"):
        MinibatchOptimizer(SGD, network(), lr=0.1, clip_each_minibatch=True)
    with pytest.raises(ValueError, match="no ClipOptimizer that clips"):
        MinibatchOptimizer(
            ClipOptimizer, SGD, network(), lr=0.1, clip=False, clip_each_minibatch=True
        )
    with pytest.raises(TypeError, match="clip_each_minibatch=1"):
        MinibatchOptimizer(SGD, network(), lr=0.1, clip_each_minibatch=1)  # type: ignore[arg-type]


def test_minibatches_divide_a_batch() -> None:
    assert [num_minibatches(12, size) for size in (12, 6, 1)] == [1, 2, 12]
    for batch, mini in ((10, 4), (4, 8)):
        with pytest.raises(ValueError, match="does not divide"):
            num_minibatches(batch, mini)
    for bad in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="a whole number from 1"):
            num_minibatches(8, bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("each", [False, True])
def test_a_trainer_that_accumulates_makes_the_same_updates(each: bool) -> None:
    def mean_loss(output: Tensor, target: Tensor) -> Tensor:
        return (output - target).pow(2).sum()

    model = network()
    inside = ClipOptimizer(AdamW, model, lr=0.01, clipping_method="norm", clipping_value=0.5)
    optimizer = MinibatchOptimizer(inside, clip_each_minibatch=each)
    trainer, data = Trainer(model, mean_loss, optimizer, accumulate=2), batches(8)
    for i in range(0, 8, 2):
        metrics = trainer.train_step_accumulated(data[i : i + 2])
        assert metrics is not None
    assert same(model, by_hand(2, 4, 0.5, each))
    assert trainer.global_step == 4


def test_a_trainer_refuses_to_clip_what_is_scaled() -> None:
    model = network()
    optimizer = MinibatchOptimizer(ClipOptimizer, SGD, model, lr=0.1, clip_each_minibatch=True)
    with pytest.raises(ValueError, match="with a scaler"):
        Trainer(model, nn.functional.mse_loss, optimizer, scaler=torch.amp.GradScaler("cpu"))
