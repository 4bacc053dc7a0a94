"""Activations, pooling and dropout as functions: there is no module where they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

from tests.libraries.loops.witnessed import (
    Wanted,
    check,
    in_double,
    outputs_of,
    train_beside_a_twin,
)
from tests.models import made
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

pytestmark = pytest.mark.libraries

SIZE, N_STEPS = 16, 8
LAYERS = ("conv1", "conv2", "fc1", "fc2")


class SmallMnistNet(nn.Module):
    """The one of pytorch/examples for MNIST, smaller; some of it changes tensors in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3, 1), nn.Conv2d(4, 8, 3, 1)
        self.fc1, self.fc2 = nn.Linear(32, 16), nn.Linear(16, 10)
        self.is_noisy = True

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x), inplace=True), 2)
        x = F.dropout(x, 0.25, training=self.training and self.is_noisy)
        x = F.relu_(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


def wanted_of(model: SmallMnistNet, images: Tensor, classes: Tensor) -> Wanted:
    """Of a copy in double precision; what is in place there is not, so that all can be asked."""
    twin = in_double(model)
    given = {name: outputs_of(twin.get_submodule(name)) for name in LAYERS}
    x = F.relu(twin.conv1(images.double()))
    x = F.max_pool2d(F.relu(twin.conv2(x)), 2)
    loss = F.nll_loss(F.log_softmax(twin.fc2(F.relu(twin.fc1(x.flatten(1)))), 1), classes)
    outputs = [output for name in LAYERS for output in given[name]]
    wanted: Wanted = {}
    for name, output, slope in zip(
        LAYERS, outputs, torch.autograd.grad(loss, outputs, retain_graph=True), strict=True
    ):
        wanted[name, "output_norm"] = norm_of(output)
        wanted[name, "output_mean"] = float(output.detach().mean())
        wanted[name, "output_std"] = float(np.std(output.detach().numpy(), ddof=1))
        wanted[name, "output_grad_norm"] = norm_of(slope)
        wanted[name, "zero_fraction"] = 0.0
        wanted[name, "calls"] = 1
    return wanted


def train(model: SmallMnistNet) -> Iterator[Wanted]:
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(N_STEPS):
        images, classes = torch.randn(SIZE, 1, 8, 8), torch.randint(0, 10, (SIZE,))
        wanted = wanted_of(model, images, classes)
        optimizer.zero_grad()
        F.nll_loss(model(images), classes).backward()
        optimizer.step()
        yield wanted


def train_without_noise(model: SmallMnistNet) -> Iterator[Wanted]:
    model.is_noisy = False
    yield from train(model)


def test_layers_are_recorded_as_they_were_before_the_functions_that_follow(watch: Watch) -> None:
    alone, model = made(SmallMnistNet), made(SmallMnistNet)
    run = watch(model)
    check(run, train_beside_a_twin(train_without_noise, alone, model))
    assert set(run.data.module.values) - {"(root)"} == {*LAYERS}  # the root has the loss


def test_random_functions_draw_the_same_numbers(watch: Watch) -> None:
    """Dropout is no module whose random numbers could be kept: none may be drawn beside it."""
    alone, model = made(SmallMnistNet), made(SmallMnistNet)
    run = watch(model, probes=["default", "gradients", "alerts"])
    train_beside_a_twin(train, alone, model)
    assert run.status().errors == ()
    assert list(run.alerts) == []
