"""Training is the same bit for bit, whatever is measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp
from tests.models import CASES, Case, loss_of, made
from tests.run.conftest import Watch

STEPS = 6
EVERYWHERE = {"*": ["input_norm", "input_mean", "output_norm", "output_grad_norm", "grad_norm"]}


@nbp.quantity(name="neutral_worst", combine="max")
def worst(output: Tensor) -> Tensor:
    """Largest absolute activation."""
    return output.abs().amax()


@nbp.quantity(name="neutral_change")
def change(weight: Tensor, grad: Tensor) -> float:
    """How far the gradient points along the weight."""
    return float((weight * grad).sum())


@nbp.quantity(name="neutral_broken")
def broken(output: Tensor) -> Tensor:
    """Raises every time."""
    raise ValueError("broken on purpose")


def nothing(run: nbp.Run, step: int) -> None:
    pass


def log(run: nbp.Run, step: int) -> None:
    run.log(step_squared=step * step)


def read(run: nbp.Run, step: int) -> None:
    run.data.load()
    run.status()
    run.probes()


def come_and_go(run: nbp.Run, step: int) -> None:
    if step % 2 == 0:
        run.attach("head", ["input_std", worst, change], "every(1)")
        run.attach("head", broken)
    else:
        run.detach("head")


def settle(run: nbp.Run, step: int) -> None:
    run.controls.settle()


def close_halfway(run: nbp.Run, step: int) -> None:
    if step == STEPS // 2:
        run.close()


WATCHED: dict[str, tuple[object, Callable[[nbp.Run, int], None]]] = {
    "default": ("default", nothing),
    "inputs everywhere": (EVERYWHERE, nothing),
    "presets": (["gradients", "optimizer", "everything"], nothing),
    "micro-batches": ({"*": ["gsnr", "stiffness"], "": ["orthogonality_test"]}, nothing),
    "user quantities": ({"*": [worst, change, broken]}, nothing),
    "logging": ("default", log),
    "reading": ("default", read),
    "attaching and detaching": ("default", come_and_go),
    "settling": ("default", settle),
    "closing halfway": ("default", close_halfway),
    "nothing": (None, nothing),
}


def everything(model: nn.Module, optimizer: Optimizer) -> list[Tensor]:
    """Parameters, gradients, buffers, the optimizer's state, the random state."""
    gradients = [value.grad for value in model.parameters() if value.grad is not None]
    states = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    ]
    random = torch.get_rng_state()
    return [*model.parameters(), *gradients, *model.buffers(), *states, random]


def trained(
    case: Case,
    optimizer_of: Callable[[nn.Module], Optimizer],
    begin: Callable[[nn.Module, Optimizer], Callable[[int], None]],
) -> list[Tensor]:
    """Everything after some steps, with clipping, accumulation and a validation on the way."""
    model = made(case.build)
    optimizer = optimizer_of(model)
    after_step = begin(model, optimizer)
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(1 + step % 2):
            loss_of(model(case.batch(10 * step + micro))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        after_step(step)
        if step == 2:
            model.eval()
            with torch.no_grad():
                model(case.batch(99))
            model.train()
    return everything(model, optimizer)


OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "convolution": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9),
    "recurrent": lambda model: Adam(model.parameters(), lr=0.01),
    "transformer": lambda model: AdamW(model.parameters(), lr=0.01),
}


@pytest.mark.parametrize("watched", WATCHED)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_is_equal_bit_for_bit(kind: str, watched: str, watch: Watch) -> None:
    probes, after = WATCHED[watched]

    def begin(model: nn.Module, optimizer: Optimizer) -> Callable[[int], None]:
        run = watch(model, optimizer, probes=probes)
        return lambda step: after(run, step)

    plain = trained(CASES[kind], OPTIMIZERS[kind], lambda model, optimizer: lambda step: None)
    probed = trained(CASES[kind], OPTIMIZERS[kind], begin)
    assert len(plain) == len(probed)
    assert all(torch.equal(a, b) for a, b in zip(plain, probed, strict=True))


def test_two_runs_on_one_model_change_nothing_either(watch: Watch) -> None:
    def begin(model: nn.Module, optimizer: Optimizer) -> Callable[[int], None]:
        runs = [watch(model), watch(model, probes=EVERYWHERE)]
        return lambda step: runs[1].close() if step == 3 else None

    case, optimizer_of = CASES["convolution"], OPTIMIZERS["convolution"]
    plain = trained(case, optimizer_of, lambda model, optimizer: lambda step: None)
    probed = trained(case, optimizer_of, begin)
    assert all(torch.equal(a, b) for a, b in zip(plain, probed, strict=True))
