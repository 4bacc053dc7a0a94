"""Gradients that are filled with zeros in place are cleared, as those that are set to None."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.models import loss_of, made, mlp, normal, sgd
from tests.probes.oracles import column, norm_of
from tests.run.conftest import Watch

N = 4


def by_optimizer(model: nn.Module) -> None:
    sgd(model).zero_grad(set_to_none=False)


def one_by_one(model: nn.Module) -> None:
    for value in model.parameters():
        if value.grad is not None:
            value.grad.zero_()


def together(model: nn.Module) -> None:
    gradients = [value.grad for value in model.parameters() if value.grad is not None]
    if gradients:
        torch._foreach_zero_(gradients)


def detached(model: nn.Module) -> None:
    for value in model.parameters():
        if value.grad is not None:
            value.grad.detach().fill_(0.0)


def to_none(model: nn.Module) -> None:
    model.zero_grad()


@pytest.mark.parametrize("clear", [by_optimizer, one_by_one, together, detached, to_none])
def test_a_discriminator_has_nothing_of_the_pass_that_trained_the_generator(
    clear: Callable[[nn.Module], None], watch: Watch
) -> None:
    """What the generator's pass left in it is cleared before its own two."""
    model = made(mlp)
    run = watch(model, probes={"": "loss_ema", "0": ["input_norm", "output_grad_norm"]})
    optimizer, losses, sizes = sgd(model), list[float](), list[float]()
    for step in range(N):
        loss_of(model(normal(100 + step, 5, 4))).backward()  # the generator's, through this one
        clear(model)
        real, fake = normal(step, 5, 4), normal(50 + step, 5, 4)
        first, second = loss_of(model(real)), loss_of(-model(fake))
        first.backward()
        second.backward()
        losses.append(first.item() + second.item())
        sizes.append(norm_of(real, fake))
        optimizer.step()
    assert run.series("", "backward_loss").values.tolist() == pytest.approx(losses, rel=1e-5)
    assert column(run, "0", "input_norm") == pytest.approx(sizes, rel=1e-5)
    assert column(run, "0", "calls") == [2] * N
    assert run.series("", "discarded_backwards").values.tolist() == [1] * N


def clipped(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def noised(model: nn.Module) -> None:
    for value in model.parameters():
        assert value.grad is not None
        value.grad.add_(0.01)


def left_alone(model: nn.Module) -> None:
    pass


@pytest.mark.parametrize("between", [clipped, noised, left_alone])
@pytest.mark.parametrize("first_is_zero", [False, True])
def test_micro_batches_between_which_gradients_are_changed_are_added_up(
    between: Callable[[nn.Module], None], first_is_zero: bool, watch: Watch
) -> None:
    """Also where one weight has no gradient to begin with, as of an adapter that begins at zero."""
    model = made(mlp)
    if first_is_zero:
        nn.init.zeros_(model.get_parameter("2.weight"))  # what is before it gets nothing
    run = watch(model, probes={"": "loss_ema", "0": ["input_norm", "output_grad_norm"]})
    optimizer, losses, sizes = sgd(model), list[float](), list[float]()
    for step in range(N):
        optimizer.zero_grad()
        parts = normal(step, 6, 4).split(2)
        total = 0.0
        for part in parts:
            loss = loss_of(model(part)) / 3
            loss.backward()
            total += loss.item()
            between(model)
        losses.append(total)
        sizes.append(norm_of(*parts))
        optimizer.step()
    assert run.series("", "backward_loss").values.tolist() == pytest.approx(losses, rel=1e-5)
    assert column(run, "0", "input_norm") == pytest.approx(sizes, rel=1e-5)
    assert column(run, "0", "calls") == [3] * N
