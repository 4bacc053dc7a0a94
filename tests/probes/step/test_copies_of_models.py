"""Copies of a watched model are silent, and the original's record does not feel them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tests.copies import deep, pickled, saved
from tests.models import ConvNet, floats, loss_of, made, mlp, sgd, train_step
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.probes.parity import bits, differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)

Copy = Callable[[nn.Module], nn.Module]


COPIES = [deep, pickled, saved]


@pytest.mark.parametrize("moment", ["forward", "backward", "step"])
@pytest.mark.parametrize("copied", COPIES, ids=lambda f: f.__name__)
def test_a_copy_made_and_trained_at_any_moment_leaves_the_record_alone(
    copied: Copy, moment: str, watch: Watch
) -> None:
    """Also right after a forward, while hooks of that forward wait for its backward."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):

            def branch(now: str, step: int = step) -> None:
                if now == moment and step == 1 and not diary.alone:
                    twin = copied(model)
                    assert differing(_weights(model), _weights(twin)) == []
                    for again in range(3):
                        train_step(twin, sgd(twin), 100 * batch(again))

            optimizer.zero_grad()
            loss = loss_of(model(batch(step)))
            branch("forward")
            loss.backward()
            branch("backward")
            with diary.update(optimizer):
                optimizer.step()
            branch("step")
        return [optimizer]

    check(*play(mlp, loop, watch))


def _weights(model: nn.Module) -> dict[str, bytes]:
    return {name: bits(value) for name, value in model.named_parameters()}


@pytest.mark.parametrize("of_torch", [False, True])
def test_an_average_that_follows_the_model_is_silent(of_torch: bool, watch: Watch) -> None:
    """Updated after each step, and run forwards in train mode with gradients on."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        average: nn.Module | None = None
        for step in range(4):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
            if diary.alone:  # its hooks would be copied
                continue
            if average is None and of_torch:
                average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
            elif average is None:
                average = copy.deepcopy(model)
            if isinstance(average, AveragedModel):
                average.update_parameters(model)
            else:
                with torch.no_grad():
                    for mean, value in zip(average.parameters(), model.parameters(), strict=True):
                        mean.lerp_(value, 0.1)
            average(100 * batch(step)).sum().backward()
        return [optimizer]

    check(*play(mlp, loop, watch))


def test_a_model_that_is_loaded_can_be_watched_itself(watch: Watch) -> None:
    model = made(ConvNet)
    images = floats(4, 1, 6, 6)
    watch(model)
    train_step(model, sgd(model), images(0))
    loaded, other = saved(model), saved(model)
    run = watch(loaded, probes={"conv1": ["output_norm"]})
    wanted = []
    optimizer, reference = sgd(loaded), sgd(other)
    for step in range(3):
        given = torch.nn.functional.conv2d(
            images(step), other.get_parameter("conv1.weight"), padding=1
        )
        wanted.append(float(np.linalg.norm(given.detach().double().numpy())))
        train_step(other, reference, images(step))
        train_step(loaded, optimizer, images(step))
    np.testing.assert_allclose(run.series("conv1", "output_norm"), wanted, rtol=1e-5)
    assert differing(everything(other), everything(loaded)) == []


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs",
         "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")  # fmt: skip


def attributes(model: nn.Module) -> list[dict[str, Any]]:
    """Everything on every module but its hooks."""
    return [
        {name: value for name, value in vars(module).items() if name not in HOOKS}
        for module in model.modules()
    ]


def test_nothing_but_hooks_is_put_on_the_model(watch: Watch) -> None:
    model = made(ConvNet)
    keys, before = list(model.state_dict()), [list(state) for state in attributes(model)]
    attached = [dict(vars(value)) for value in model.parameters()]
    run = watch(model)
    run.attach("*", ["input_norm", "output_norm"])
    optimizer = sgd(model)
    for step in range(2):
        train_step(model, optimizer, floats(4, 1, 6, 6)(step))
    assert list(model.state_dict()) == keys
    assert [list(state) for state in attributes(model)] == before
    assert [dict(vars(value)) for value in model.parameters()] == attached
    for module in model.modules():
        assert not module._backward_hooks
        assert not module._backward_pre_hooks
        assert not module._state_dict_hooks


def test_a_state_dict_of_a_watched_model_fits_a_plain_one(watch: Watch) -> None:
    """Strictly, both ways, and with gradients that are kept."""
    model, plain = made(mlp), made(mlp, seed=2)
    run = watch(model, probes={"0": ["weight_norm"]})
    train_step(model, sgd(model), batch(0))
    plain.load_state_dict(model.state_dict(), strict=True)
    assert _weights(model) == _weights(plain)
    halved: dict[str, Tensor] = {k: v / 2 for k, v in plain.state_dict().items()}
    wanted = float(np.linalg.norm(halved["0.weight"].double().numpy()))
    model.load_state_dict(halved, strict=True)
    train_step(model, sgd(model), batch(1))
    assert float(run.series("0", "weight_norm")[1]) == pytest.approx(wanted, rel=1e-6)
