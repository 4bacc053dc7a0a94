"""To schedulers, scalers, checkpoints and copies they are optimizers of torch."""

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim import lr_scheduler as torch_schedulers
from torch.optim.swa_utils import SWALR

from notebook_probe.experiment.optimizers import ClipOptimizer, MinibatchOptimizer
from tests.experiment.optimizers.networks import batches, loss_of, network, same, same_state, train

AROUND: dict[str, Callable[[Optimizer], Optimizer]] = {
    "clip": lambda inside: ClipOptimizer(inside, clip=False),
    "minibatch": MinibatchOptimizer,
    "both": lambda inside: MinibatchOptimizer(ClipOptimizer(inside, clip=False)),
}

SCHEDULERS: dict[str, Callable[[Optimizer], Any]] = {
    "LambdaLR": lambda o: torch_schedulers.LambdaLR(o, lambda step: 0.9**step),
    "MultiplicativeLR": lambda o: torch_schedulers.MultiplicativeLR(o, lambda step: 0.9),
    "StepLR": lambda o: torch_schedulers.StepLR(o, 2),
    "MultiStepLR": lambda o: torch_schedulers.MultiStepLR(o, [1, 3]),
    "ConstantLR": lambda o: torch_schedulers.ConstantLR(o, total_iters=2),
    "LinearLR": lambda o: torch_schedulers.LinearLR(o, total_iters=3),
    "ExponentialLR": lambda o: torch_schedulers.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda o: torch_schedulers.PolynomialLR(o, total_iters=6),
    "CosineAnnealingLR": lambda o: torch_schedulers.CosineAnnealingLR(o, 6),
    "CosineAnnealingWarmRestarts": lambda o: torch_schedulers.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda o: torch_schedulers.CyclicLR(o, 0.001, 0.01, 2),
    "OneCycleLR": lambda o: torch_schedulers.OneCycleLR(o, 0.01, total_steps=8),
    "SWALR": lambda o: SWALR(o, 0.001, anneal_epochs=3),
    "ChainedScheduler": lambda o: torch_schedulers.ChainedScheduler(
        [torch_schedulers.ExponentialLR(o, 0.9), torch_schedulers.StepLR(o, 2)], optimizer=o
    ),
    "SequentialLR": lambda o: torch_schedulers.SequentialLR(
        o,
        [torch_schedulers.ConstantLR(o, total_iters=2), torch_schedulers.ExponentialLR(o, 0.9)],
        milestones=[2],
    ),
}


def sgd(model: nn.Module) -> SGD:
    return SGD(model.parameters(), lr=0.01, momentum=0.9)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_of_torch_moves_it_and_goes_on_from_its_state(
    name: str, around: str
) -> None:
    theirs, mine, data = network(), network(), batches(6, scale=1.0)
    plain, ours = sgd(theirs), AROUND[around](sgd(mine))
    assert isinstance(ours, Optimizer)
    expected, scheduler = SCHEDULERS[name](plain), SCHEDULERS[name](ours)
    train(theirs, plain, data, after_step=expected.step)
    train(mine, ours, data[:3], after_step=scheduler.step)
    state = copy.deepcopy((ours.state_dict(), scheduler.state_dict()))

    again = network(seed=1)
    again.load_state_dict(mine.state_dict())
    resumed = AROUND[around](sgd(again))
    scheduler = SCHEDULERS[name](resumed)
    resumed.load_state_dict(state[0])
    scheduler.load_state_dict(state[1])
    train(again, resumed, data[3:], after_step=scheduler.step)
    assert same(again, theirs)


def test_a_plateau_lowers_its_rate() -> None:
    optimizer = ClipOptimizer(SGD, network(), lr=1.0)
    scheduler = torch_schedulers.ReduceLROnPlateau(optimizer, patience=0)
    for loss in (1.0, 2.0):
        scheduler.step(loss)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


@pytest.mark.parametrize("around", AROUND)
def test_groups_state_and_options_are_those_of_the_optimizer_inside(around: str) -> None:
    model = network()
    inside = sgd(model)
    ours = AROUND[around](inside)
    train(model, ours, batches(1))
    assert ours.param_groups is inside.param_groups
    assert ours.state is inside.state
    assert ours.defaults is inside.defaults
    assert same_state(ours.state_dict(), inside.state_dict())
    extra = nn.Parameter(torch.zeros(1))
    ours.add_param_group({"params": [extra], "lr": 0.5})
    assert inside.param_groups[1]["lr"] == 0.5
    assert "SGD" in repr(ours)


@pytest.mark.parametrize("around", AROUND)
def test_its_state_is_read_back_without_running_code(around: str) -> None:
    model = network()
    ours = AROUND[around](AdamW(model.parameters(), lr=0.01))
    train(model, ours, batches(2))
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    plain = AdamW(model.parameters(), lr=0.5)
    plain.load_state_dict(torch.load(file, weights_only=True))
    assert same_state(plain.state_dict(), ours.state_dict())


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("around", AROUND)
def test_a_scaler_unscales_and_skips_what_has_overflowed(around: str, fused: bool) -> None:
    def trained(around: Callable[[Optimizer], Optimizer]) -> tuple[nn.Module, float]:
        model, data = network(), batches(5)
        optimizer = around(AdamW(model.parameters(), lr=0.01, fused=fused))
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        data[2][0][0, 0] = torch.inf
        for batch in data:
            optimizer.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            scaler.step(optimizer)
            scaler.update()
        return model, scaler.get_scale()

    (mine, scale), (theirs, expected) = trained(AROUND[around]), trained(lambda inside: inside)
    assert same(mine, theirs)
    assert scale == expected


def test_it_clips_what_is_unscaled() -> None:
    def trained(clips: bool) -> nn.Module:
        model = network()
        optimizer: Optimizer = sgd(model)
        if clips:
            optimizer = ClipOptimizer(optimizer, clipping_value=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for batch in batches(3):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            if not clips:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_value_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
        return model

    assert same(trained(True), trained(False))


@pytest.mark.parametrize("around", AROUND)
def test_a_copy_trains_on_by_itself(around: str) -> None:
    model, data = network(), batches(4)
    ours = AROUND[around](sgd(model))
    scheduler = torch_schedulers.StepLR(ours, 1)
    ours.register_step_post_hook(lambda *_: None)
    assert scheduler.get_last_lr() == [0.01]
    train(model, ours, data[:2])
    other, copied = copy.deepcopy((model, ours))
    train(other, copied, data[2:])
    assert not same(model, other)
    train(model, ours, data[2:])
    assert same(model, other)


@pytest.mark.parametrize("around", AROUND)
def test_hooks_hear_of_its_steps_and_states(around: str) -> None:
    model, heard = network(), []
    ours = AROUND[around](sgd(model))
    ours.register_step_pre_hook(lambda optimizer, *_: heard.append(("before", optimizer is ours)))
    ours.register_step_post_hook(lambda optimizer, *_: heard.append(("after", optimizer is ours)))
    ours.register_state_dict_post_hook(lambda optimizer, state: {**state, "more": 1})
    ours.register_load_state_dict_pre_hook(lambda _, state: {k: state[k] for k in state})
    ours.register_load_state_dict_post_hook(lambda _: heard.append(("loaded", True)))
    train(model, ours, batches(1))
    state = ours.state_dict()
    assert state["more"] == 1
    ours.load_state_dict(state)
    assert heard == [("before", True), ("after", True), ("loaded", True)]


def test_hooks_of_what_is_inside_are_called_too() -> None:
    model, heard = network(), []
    clip = ClipOptimizer(sgd(model))
    clip.register_step_post_hook(lambda *_: heard.append("after"))
    train(model, MinibatchOptimizer(clip), batches(2))
    assert heard == ["after", "after"]


def test_a_hook_that_changes_arguments_is_refused() -> None:
    model = network()
    optimizer = ClipOptimizer(sgd(model))
    optimizer.register_step_pre_hook(lambda *_: ((), {}))
    with pytest.raises(TypeError, match="changes the arguments"):
        train(model, optimizer, batches(1))
