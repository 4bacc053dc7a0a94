"""The loss of a loop that logs none: the sum of what `backward()` was called on for an update."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.autograd import grad
from torch.nn import functional as F
from torch.optim import LBFGS, SGD, Adam, Optimizer
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from tests.models import floats, loss_of, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(6, 4)
STEPS = 5
READS_IT = {"": "loss_ema"}

Loop = Callable[[nn.Module, Optimizer], Iterator[float]]


def recorded(run: nbp.Run) -> list[float]:
    run.settle()
    series = run.series("", BACKWARD_LOSS)
    assert series.step.values.tolist() == [*range(len(series))]
    return series.values.tolist()


def near(values: list[float]) -> Any:
    return pytest.approx(values, rel=1e-6)


def plain(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        yield train_step(model, optimizer, batch(step))


def accumulated(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for part in batch(step).split(2):
            loss = loss_of(model(part)) / 3
            loss.backward()
            total += loss.item()
        optimizer.step()
        yield total


def of_two_tasks(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(batch(step))
        first, second = output.square().mean(), (output - 1).abs().mean()
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        yield (first + second).item()


def of_a_list(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(batch(step))
        losses = [output.square().mean(), output.abs().mean(0, keepdim=True).mean(1)]
        torch.autograd.backward(losses)
        optimizer.step()
        yield sum(loss.item() for loss in losses)


def with_a_sign(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    """As in the first GANs of Wasserstein: a gradient of 1 or of -1 is given for a scalar."""
    one = torch.ones(())
    for step in range(STEPS):
        optimizer.zero_grad()
        real, fake = model(batch(step)).mean(), model(batch(step + 50)).mean()
        real.backward(one)
        fake.backward(-one)
        optimizer.step()
        yield (real - fake).item()


def scaled(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


def penalised(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs = batch(step).requires_grad_()
        output = model(inputs)
        (slope,) = grad(output.sum(), inputs, create_graph=True)
        loss = loss_of(output) + slope.square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def attacked(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    """The sign of the gradient of the input first, by each of the ways in which it is asked for."""
    for step in range(STEPS):
        inputs = batch(step).requires_grad_()
        inner = loss_of(model(inputs))
        if step % 2:
            inner.backward()
        else:
            inner.backward(inputs=[inputs])
        assert inputs.grad is not None
        optimizer.zero_grad()
        loss = loss_of(model((inputs + 0.1 * inputs.grad.sign()).detach()))
        loss.backward()
        optimizer.step()
        yield loss.item()


def checkpointed(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs = batch(step).requires_grad_()
        loss = loss_of(checkpoint(model, inputs, use_reentrant=True))
        loss.backward()
        optimizer.step()
        yield loss.item()


def projected(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    """As PCGrad does it: each task by itself, and gradients that are made of all by hand."""
    for step in range(STEPS):
        output, found, total = model(batch(step)), [], 0.0
        for loss in (output.square().mean(), output.abs().mean()):
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            found.append([value.grad for value in model.parameters()])
            total += loss.item()
        for value, one, other in zip(model.parameters(), *found, strict=True):
            assert one is not None
            assert other is not None
            value.grad = one + other
        optimizer.step()
        yield total


def in_a_closure(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):

        def closure(step: int = step) -> Tensor:
            optimizer.zero_grad()
            loss = loss_of(model(batch(step)))
            loss.backward()
            return loss

        returned = optimizer.step(closure)  # type: ignore[arg-type]
        yield returned.item()  # type: ignore[attr-defined]


def from_the_middle(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    """The head by itself, as who saves memory has it; the trunk is handed a gradient."""
    assert isinstance(model, nn.Sequential)
    for step in range(STEPS):
        optimizer.zero_grad()
        hidden = model[:2](batch(step))
        cut = hidden.detach().requires_grad_()
        loss = loss_of(model[2](cut))
        loss.backward()
        hidden.backward(cut.grad)
        optimizer.step()
        yield loss.item()


def in_a_thread(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
        optimizer.step()
        yield loss.item()


def frozen_in_turn(model: nn.Module, optimizer: Optimizer) -> Iterator[float]:
    """Once the first layer is frozen another parameter has to tell, which takes a step to find."""
    for step in range(STEPS):
        for value in next(iter(model.children())).parameters():
            value.requires_grad_(step < 2)
            value.grad = None
        loss = train_step(model, optimizer, batch(step))
        yield loss if step != 2 else float("nan")


LOOPS: list[Loop] = [plain, accumulated, of_two_tasks, of_a_list, with_a_sign, scaled, penalised,
                     attacked, checkpointed, projected, from_the_middle, in_a_thread]  # fmt: skip


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
    run.settle()
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
    run.settle()
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
