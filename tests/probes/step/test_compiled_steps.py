"""torch.compile round an optimizer's step, or round everything: parameters are read as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import PARAMETER
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

# What torch's own compiler imports is deprecated in torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")

SPARING = {
    "cpp.vec_isa_ok": False,
    "cpp_cache_precompile_headers": False,
    "compile_threads": 1,
    "fx_graph_cache": False,  # it hands out code made with vector instructions, and keeps ours
}
"""Let inductor compile our few kernels alone; on a fresh machine it compiles for a minute."""

batch = floats(5, 4)
Values = dict[tuple[str, str], list[float]]


@pytest.fixture
def sparing_inductor() -> Iterator[None]:
    """Inductor without vector instructions, which it would not look for again in this process."""
    from torch._inductor.cpu_vec_isa import valid_vec_isa_list

    valid_vec_isa_list.cache_clear()
    with torch._inductor.config.patch(SPARING):
        yield
    valid_vec_isa_list.cache_clear()


def weights_of(model: nn.Module) -> dict[str, np.ndarray]:
    return {name: numbers([value]) for name, value in model.named_parameters()}


def add_row(
    told: Values, model: nn.Module, before: dict[str, np.ndarray], gradients: dict[str, Tensor]
) -> None:
    """What one step must have recorded of every parameter."""
    for name, value in model.named_parameters():
        size = norm(before[name])
        change = norm(numbers([value]) - before[name])
        row = (size, norm(numbers([gradients[name]])), change / (size + 1e-12))
        for quantity, number in zip(PARAMETER, row, strict=True):
            told.setdefault((name, quantity), []).append(number)


def compiled_step(model: nn.Module, optimizer: Optimizer, backend: str) -> Values:
    """Only the optimizer's step is compiled."""
    told: Values = {}
    step_of = torch.compile(optimizer.step, backend=backend)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()
                     if p.grad is not None}  # fmt: skip
        before = weights_of(model)
        step_of()
        add_row(told, model, before, gradients)
    return told


def compiled_training(model: nn.Module, optimizer: Optimizer, backend: str) -> Values:
    """Forward, loss, backward and step are one compiled function."""
    told: Values = {}

    @torch.compile(backend=backend)
    def train_step(given: Tensor) -> None:
        loss = (model(given) - 0.3).square().mean()
        loss.backward()
        optimizer.step()

    for step in range(4):
        optimizer.zero_grad()
        before = weights_of(model)
        train_step(batch(step))
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()
                     if p.grad is not None}  # fmt: skip
        add_row(told, model, before, gradients)
    return told


MAKERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "plain sgd": lambda model: SGD(model.parameters(), lr=0.1),
    "sgd": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9),
    "adamw": lambda model: AdamW(model.parameters(), lr=0.01, foreach=True),
}
Train = Callable[[nn.Module, Optimizer, str], Values]
CHOICES: Sequence[tuple[Train, str, str]] = [
    (compiled_step, "eager", "sgd"),
    (compiled_step, "eager", "adamw"),
    (compiled_step, "aot_eager", "sgd"),
    (compiled_step, "inductor", "plain sgd"),
    (compiled_training, "eager", "sgd"),
    (compiled_training, "aot_eager", "adamw"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("sparing_inductor")
@pytest.mark.parametrize(("train", "backend", "kind"), CHOICES)
def test_a_compiled_step_is_counted_and_its_parameters_are_read(
    train: Train, backend: str, kind: str, watch: Watch
) -> None:
    alone, watched = made(mlp), made(mlp)
    optimizer = MAKERS[kind](alone)
    expected = train(alone, optimizer, backend)
    left = everything(alone, [optimizer])
    torch._dynamo.reset()
    run = watch(watched, probes={name: PARAMETER for name, _ in watched.named_parameters()})
    optimizer = MAKERS[kind](watched)
    train(watched, optimizer, backend)
    assert differing(left, everything(watched, [optimizer])) == []
    assert run.data.step.values.tolist() == [0, 1, 2, 3]
    for (name, quantity), values in expected.items():
        np.testing.assert_allclose(
            run.series(name, quantity), values, rtol=1e-5, err_msg=f"{quantity} of {name}"
        )
