"""Hooks that learn which passes reach a model: few on parameters, where they always cost time."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.loss.arrivals import NodeHook
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from tests.models import made, mlp, sgd, train_step
from tests.probes.loss.loops import batch
from tests.run.conftest import Watch


def hooked(model: nn.Module) -> list[str]:
    """Names of the parameters for which torch looks for hooks at each pass, if there are any."""
    found = model.named_parameters()
    return [name for name, value in found if value._post_accumulate_grad_hooks is not None]


def test_one_parameter_at_most_ever_has_a_hook(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer)
    for _ in range(5):
        train_step(model, optimizer, batch(0))
    run.close()
    assert len(hooked(model)) == 1 < len([*model.parameters()])


def test_losses_are_found_though_other_models_were_trained_first(watch: Watch) -> None:
    model, other = made(mlp), made(mlp)
    optimizer, of_other = sgd(model), sgd(other)
    run = watch(model, optimizer, probes={"": "loss_ema"})
    for _ in range(40):
        train_step(other, of_other, batch(0))
    for _ in range(5):
        train_step(model, optimizer, batch(0))
    run.controls.settle()
    assert run.series("", BACKWARD_LOSS).step.values.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_parameters_are_swapped_between_the_first_steps(watch: Watch, n_before: int) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    watch(model, optimizer)
    for _ in range(n_before):
        train_step(model, optimizer, batch(0))
        optimizer.zero_grad()
    model.double()
    model.float()
    train_step(model, optimizer, batch(0))


class Arrivals:
    """Counts the gradients that it is notified of."""

    n = 0

    def arrived(self, slot: Slot, parameter: Tensor, begun: float) -> None:
        self.n += 1


def test_a_pass_goes_on_where_another_thread_has_just_taken_a_hook_off() -> None:
    """Torch calls the hooks that a node had when it was reached."""
    model, arrivals = nn.Linear(2, 1), Arrivals()
    removed = list[NodeHook]()
    node = get_gradient_edge(model.weight).node
    node.register_hook(lambda *_: removed[0].remove())
    removed.append(
        NodeHook(model.weight, Slot(weakref.ref(model), "weight"), weakref.ref(arrivals))
    )
    model(torch.ones(3, 2)).sum().backward()
    assert model.weight.grad is not None
    assert arrivals.n == 0
