"""Hooks come and go with what is due, but for models that run compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, made, mlp, sgd
from tests.run.conftest import Watch

# What torch's own compiler imports is deprecated in torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")

batch = floats(5, 4)


def compile_another(step: int) -> None:
    """Compile and call a model that nobody watches, of a shape of its own."""
    torch._dynamo.reset()
    other: Any = torch.compile(nn.Linear(4, 2 + step), backend="eager")
    other(batch(0))


def hooks_by_step(
    watch: Watch, call: Callable[[nn.Module], Callable[[Tensor], Tensor]], before: bool, when: int
) -> list[int]:
    """How many hooks an inner module has in steps of which every fourth is due."""
    if before:
        compile_another(0)
    model = made(mlp)
    run = watch(model, probes={"2": [["output_norm", "every(4)"]]})
    optimizer, called = sgd(model), call(model)
    inner, found = model[2], []
    for step in range(12):
        if step == when:
            compile_another(1)
        optimizer.zero_grad()
        loss = called(batch(step)).square().mean()
        found.append(len(inner._forward_hooks))
        loss.backward()
        optimizer.step()
    run.controls.settle()
    return found


def plainly(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return model


def compiled(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return torch.compile(model, backend="eager")


def within_a_function(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return torch.compile(lambda x: model(x), backend="eager")


@pytest.mark.slow
@pytest.mark.parametrize(("before", "when"), [(False, -1), (True, -1), (False, 5), (True, 5)])
def test_what_is_compiled_elsewhere_leaves_no_hook_in_steps_without_anything_due(
    watch: Watch, before: bool, when: int
) -> None:
    found = hooks_by_step(watch, plainly, before, when)
    assert [found[step] for step in (0, 4, 8)] == [1, 1, 1]
    assert [found[step] for step in (1, 2, 3, 10, 11)] == [0] * 5


@pytest.mark.slow
@pytest.mark.parametrize("call", [compiled, within_a_function])
def test_the_hooks_of_a_compiled_model_stay(
    watch: Watch, call: Callable[[nn.Module], Callable[[Tensor], Tensor]]
) -> None:
    torch._dynamo.reset()
    found = hooks_by_step(watch, call, before=False, when=-1)
    assert len({*found[2:]}) == 1, "else it would be compiled again and again"
