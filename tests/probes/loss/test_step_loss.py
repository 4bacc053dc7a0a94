"""The loss of a loop that logs none: the sum of what `backward()` was called on for an update."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn import functional as F
from torch.optim import LBFGS, SGD, Adam, Optimizer
from torch.overrides import TorchFunctionMode

import notebook_probe as nbp
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from tests.models import loss_of, made, mlp, sgd, train_step
from tests.probes.loss.loops import (
    LOOPS,
    STEPS,
    Loop,
    accumulated,
    batch,
    frozen_in_turn,
    in_a_closure,
    plain,
    scaled,
)
from tests.run.conftest import Watch

READS_IT = {"": "loss_ema"}


def recorded(run: nbp.Run) -> list[float]:
    run.controls.settle()
    series = run.series("", BACKWARD_LOSS)
    assert series.step.values.tolist() == [*range(len(series))]
    return series.values.tolist()


def near(values: list[float]) -> Any:
    return pytest.approx(values, rel=1e-6)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_the_loss_is_what_the_update_was_made_of(loop: Loop, watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    expected = [*loop(model, optimizer)]
    assert recorded(run) == near(expected)
    np.testing.assert_allclose(
        run.series("", "loss_ema").values, np.cumsum(expected) / np.arange(1, STEPS + 1), rtol=1e-5
    )


@pytest.mark.parametrize(
    "make", [sgd, lambda model: LBFGS(model.parameters(), max_iter=4)], ids=["sgd", "lbfgs"]
)
def test_of_a_closure_it_is_the_first_run_as_the_optimizer_returns_it(
    make: Callable[[nn.Module], Optimizer], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = make(model)
    run = watch(model, optimizer, probes=READS_IT)
    expected = [*in_a_closure(model, optimizer)]
    assert recorded(run) == near(expected)


@pytest.mark.parametrize("loop", [plain, accumulated, scaled], ids=lambda loop: loop.__name__)
def test_training_is_the_same_bit_for_bit(loop: Loop, watch: Watch) -> None:
    watched, alone = made(mlp), made(mlp)
    of_watched, of_alone = sgd(watched), sgd(alone)
    watch(watched, of_watched, probes=READS_IT)
    assert [*loop(watched, of_watched)] == [*loop(alone, of_alone)]
    for one, other in zip(watched.parameters(), alone.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_parameter_that_stops_to_learn_is_replaced_as_a_witness(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    expected = [*frozen_in_turn(model, optimizer)]
    run.controls.settle()
    series = run.series("", BACKWARD_LOSS)
    assert series.step.values.tolist() == [0, 1, 3, 4]
    assert series.values.tolist() == near([expected[step] for step in (0, 1, 3, 4)])


def test_of_two_models_that_train_each_other_each_has_its_own(watch: Watch) -> None:
    """As pytorch/examples trains a GAN: two passes for the critic, one through it."""
    generator, critic = made(lambda: nn.Linear(4, 4)), made(lambda: nn.Linear(4, 1))
    of_generator, of_critic = Adam(generator.parameters(), 0.01), Adam(critic.parameters(), 0.01)
    runs = watch(generator, probes=READS_IT), watch(critic, probes=READS_IT)
    expected: list[tuple[float, float]] = []
    for step in range(STEPS):
        critic.zero_grad()
        real = F.softplus(-critic(batch(step))).mean()
        real.backward()
        fakes = generator(batch(100 + step))
        fake = F.softplus(critic(fakes.detach())).mean()
        fake.backward()
        of_critic.step()
        generator.zero_grad()
        fooled = F.softplus(-critic(fakes)).mean()
        fooled.backward()
        of_generator.step()
        expected.append((fooled.item(), (real + fake).item()))
    assert recorded(runs[0]) == near([of_one for of_one, _ in expected])
    assert recorded(runs[1]) == near([of_other for _, of_other in expected])


def test_two_parts_with_an_optimizer_each_are_summed(watch: Watch) -> None:
    model = made(lambda: nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)]))
    optimizers = [sgd(part) for part in model]
    run = watch(model, probes={"0": "weight_norm", "": "loss_ema"})
    expected = []
    for step in range(STEPS):
        losses = [loss_of(part(batch(step))) for part in model]
        for loss, optimizer in zip(losses, optimizers, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        expected.append(sum(loss.item() for loss in losses))
    assert recorded(run) == near(expected)


@pytest.mark.parametrize(
    ("turns", "n_missed"),
    [("01", 0), ("012", 0), ("0001", 0), ("01111", 0), ("0" * 7 + "1", 0), ("0" * 9 + "1", 1)],
)
def test_of_parts_that_are_trained_in_turn_each_has_its_losses_from_its_second_turns_on(
    turns: str, n_missed: int, watch: Watch
) -> None:
    """A part whose first turn comes late is known only when it has been missed."""
    model = made(lambda: nn.ModuleList([nn.Linear(4, 2) for _ in range(3)]))
    optimizers = [sgd(part) for part in model]
    run = watch(model, probes={"*": "output_norm", "": "loss_ema"})
    expected = {}
    for step in range(9 * len(turns)):
        part = int(turns[step % len(turns)])
        loss = loss_of(model[part](batch(step)))
        optimizers[part].zero_grad()
        loss.backward()
        optimizers[part].step()
        expected[step] = loss.item()
    run.controls.settle()
    found = run.series("", BACKWARD_LOSS)
    steps = found.step.values.tolist()
    assert found.values.tolist() == near([expected[step] for step in steps])
    assert {*range(3 * len(turns), len(expected))} <= {*steps}
    assert len(expected) - len(steps) == n_missed


@pytest.mark.parametrize("n_critic", [1, 5])
def test_of_a_generator_and_its_critic_in_one_model_both_have_their_losses(
    n_critic: int, watch: Watch
) -> None:
    """The generator's pass reaches the critic, too, whose optimizer is another."""
    model = made(lambda: nn.ModuleDict({"g": nn.Linear(4, 4), "d": nn.Linear(4, 1)}))
    of_g, of_d = sgd(model["g"]), sgd(model["d"])
    run = watch(model, probes={"*": "output_norm", "": "loss_ema"})
    expected = []
    for turn in range(8):
        for _ in range(n_critic):
            fakes = model["g"](batch(turn)).detach()
            loss = F.softplus(model["d"](fakes)).mean() + F.softplus(-model["d"](batch(9))).mean()
            of_d.zero_grad()
            loss.backward()
            of_d.step()
            expected.append(loss.item())
        loss = F.softplus(-model["d"](model["g"](batch(turn)))).mean()
        of_g.zero_grad()
        loss.backward()
        of_g.step()
        expected.append(loss.item())
    run.controls.settle()
    found = run.series("", BACKWARD_LOSS)
    steps = found.step.values.tolist()
    assert steps == [*range(len(expected))]
    assert found.values.tolist() == near(expected)


def test_an_optimizer_that_has_no_gradient_is_soon_no_longer_sought_for(watch: Watch) -> None:
    model = made(lambda: nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)]))
    optimizers = [sgd(part) for part in model]
    run = watch(model, probes={"*": "output_norm", "": "loss_ema"})
    expected = []
    for step in range(120):
        loss = loss_of(model[0](batch(step)))
        optimizers[step % 2].zero_grad()
        loss.backward()
        optimizers[step % 2].step()  # every second one has nothing to apply
        if step % 2 == 0:
            expected.append(loss.item())
    run.controls.settle()
    witnesses = run._parts.observer.updates.loss.witnesses
    assert not witnesses.may_search
    assert run.series("", BACKWARD_LOSS).values.tolist()[:3] == near(expected[:3])


def test_an_optimizer_that_steps_inside_the_pass_has_its_loss(watch: Watch) -> None:
    model = made(mlp)
    optimizers = {value: SGD([value], lr=0.1) for value in model.parameters()}

    def apply(value: Tensor) -> None:
        optimizers[value].step()  # type: ignore[index]
        optimizers[value].zero_grad()  # type: ignore[index]

    for value in model.parameters():
        value.register_post_accumulate_grad_hook(apply)
    run = watch(model, probes=READS_IT)
    expected = []
    for step in range(STEPS):
        loss = loss_of(model(batch(step)))
        loss.backward()
        expected.append(loss.item())
    assert recorded(run) == near(expected)


def test_a_step_that_the_scaler_skips_has_no_loss(watch: Watch) -> None:
    model = made(mlp)
    optimizer, scaler = sgd(model), GradScaler("cpu", init_scale=4.0)
    run = watch(model, optimizer, probes=READS_IT)
    expected = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step) * (1e30 if step == 2 else 1.0)))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        expected += [loss.item()] if step != 2 else []
    assert recorded(run) == near(expected)


def test_steps_by_hand_have_it(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=READS_IT)
    expected = []
    for step in range(STEPS):
        model.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        run.step()
        with torch.no_grad():
            for value in model.parameters():
                value.sub_(value.grad, alpha=0.1)  # type: ignore[arg-type]
        expected.append(loss.item())
    assert recorded(run) == near(expected)


def test_what_is_no_loss_is_none(watch: Watch) -> None:
    """Gradients that are handed over, given back, or of somebody else's model."""
    model, other = made(mlp), made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(batch(step))
        loss_of(other(batch(step))).backward()
        output.backward(torch.ones_like(output))
        optimizer.step()
    run.controls.settle()
    assert BACKWARD_LOSS not in run.data


def test_a_pass_that_raises_is_none_and_its_error_is_its_own(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    loss = loss_of(model(batch(0)))
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    optimizer.step()
    assert recorded(run) == near([loss.item()])


class Doubled(Tensor):
    """A tensor of somebody's own class, which counts what is asked of it."""

    n_calls = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.n_calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Counts(TorchFunctionMode):
    n_calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n_calls += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("foreign", [True, False])
def test_nobody_who_counts_calls_sees_ours(foreign: bool, watch: Watch) -> None:
    counted = []
    for is_watched in (False, True):
        model = made(mlp)
        optimizer = sgd(model)
        run = watch(model, optimizer, probes=READS_IT) if is_watched else None
        mode, Doubled.n_calls, losses = Counts(), 0, []
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(model(batch(step)))
            losses.append(loss.item())
            if foreign:
                loss = loss.as_subclass(Doubled)
            with mode:
                loss.backward()
            optimizer.step()
        counted.append((mode.n_calls, Doubled.n_calls))
        if run is not None:
            assert recorded(run) == near(losses)
    assert counted[0] == counted[1]


def test_half_precision_is_summed_in_full(watch: Watch) -> None:
    model = made(mlp).to(torch.bfloat16)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    losses = [loss_of(model(part.bfloat16())) for part in batch(0).split(1)]
    for loss in losses:
        loss.backward()
    optimizer.step()
    assert recorded(run) == [pytest.approx(sum(loss.item() for loss in losses), rel=1e-6)]


def test_a_copy_and_a_pickle_know_nothing_of_it(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    watch(model, optimizer, probes=READS_IT)
    loss_of(model(batch(0))).backward()
    for text in (pickle.dumps(model), pickle.dumps(optimizer)):
        assert b"notebook_probe" not in text
    copied = copy.deepcopy(model)
    train_step(copied, sgd(copied), batch(1))


def test_a_compiled_step_is_compiled_once(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    n_graphs = 0

    def count(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        nonlocal n_graphs
        n_graphs += 1
        return graph.forward

    compiled = torch.compile(lambda given: loss_of(model(given)), backend=count)
    run = watch(model, optimizer, probes=READS_IT)
    expected = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = compiled(batch(step))
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert n_graphs == 1
    assert recorded(run) == near(expected)


class _Breaks(torch.autograd.Function):
    """Raises on the way back, when what is behind it has its gradients already."""

    @staticmethod
    def forward(ctx: Any, given: Tensor) -> Tensor:
        return given.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        raise FloatingPointError("on the way")


def test_a_pass_that_broke_off_on_its_way_counts_for_nothing(watch: Watch) -> None:
    """Although what it has left in the last layer is applied with the next one."""
    model = made(mlp)
    optimizer = sgd(model)
    run, losses = watch(model, optimizer, probes=READS_IT), list[float]()
    for step in range(3):
        optimizer.zero_grad()
        if step == 1:
            hidden = model.get_submodule("1")(model.get_submodule("0")(batch(50)))
            broken = loss_of(model.get_submodule("2")(_Breaks.apply(hidden)))
            with pytest.raises(FloatingPointError):
                broken.backward()
            assert model.get_parameter("2.weight").grad is not None
        loss = loss_of(model(batch(step)))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    assert recorded(run) == near(losses)
