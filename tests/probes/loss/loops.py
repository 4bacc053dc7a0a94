"""Training loops that log no loss, each yielding what it should have been found to be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.autograd import grad
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

from tests.models import floats, loss_of, train_step

batch = floats(6, 4)
STEPS = 5

Loop = Callable[[nn.Module, Optimizer], Iterator[float]]


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
    """Once the last layer is frozen another parameter has to tell, which takes a step to find."""
    for step in range(STEPS):
        for value in [*model.children()][-1].parameters():
            value.requires_grad_(step < 2)
            value.grad = None
        loss = train_step(model, optimizer, batch(step))
        yield loss if step != 2 else float("nan")


LOOPS: list[Loop] = [plain, accumulated, of_two_tasks, of_a_list, with_a_sign, scaled, penalised,
                     attacked, checkpointed, projected, from_the_middle, in_a_thread]  # fmt: skip
