"""Kinds of faults in 52 programs of StackOverflow and GitHub that do not learn.

The programs are those of DeepFD's benchmark (Cao et al., ICSE 2022, github.com/ArabelaTso/DeepFD),
on which DeepLocalize, UMLAUT, AutoTrainer and DEFault were compared. Their patches change the last
activation, the loss, the learning rate, the optimizer, the scale of the data, the layers or the
number of epochs. Each kind is one training here, with small data in place of the program's own; the
healthy twin is the patched one. The numbers in a docstring are those of the questions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.data import (
    batches,
    cancer,
    diabetes,
    digits,
    iris,
    scikit,
    wine,
)
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.mistakes.errors import misread, off
from benchmarks.rules.mistakes.expected import TOO_HIGH, TOO_LOW, UNHEALTHY
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("published")
Pair = tuple[Tensor, Tensor]

UNREACHED = ("targets_out_of_range", "constant_outputs", "every_gradient_zero", "nothing_to_learn")
"""Names of a last activation that cannot give the targets."""
UNSCALED = ("large_outputs", "targets_out_of_scale", "tiny_inputs", *TOO_HIGH)
"""Names of data that were not scaled."""


def dense(*widths: int, hidden: type[nn.Module] = nn.ReLU, last: nn.Module) -> nn.Sequential:
    """Dense layers as Keras stacks them, with an activation after the last one, too."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), hidden()]
    return nn.Sequential(*layers[:-1], last)


def log_loss(model: nn.Module, batch: Pair) -> Tensor:
    """Keras's categorical cross entropy, of outputs that it divides by their sum."""
    made = model(batch[0])
    wanted = F.one_hot(batch[1], made.shape[-1]) if batch[1].ndim == 1 else batch[1]
    shares = (made / made.sum(-1, keepdim=True)).clamp(1e-7, 1 - 1e-7)
    return -(wanted * shares.log()).sum(-1).mean()


def one_hot_error(model: nn.Module, batch: Pair) -> Tensor:
    """The mean squared error of classes."""
    made = model(batch[0])
    return F.mse_loss(made, F.one_hot(batch[1], made.shape[-1]).float())


def binary(model: nn.Module, batch: Pair) -> Tensor:
    """The binary cross entropy of one probability, clipped as Keras does."""
    made = model(batch[0]).flatten().clamp(1e-7, 1 - 1e-7)
    return F.binary_cross_entropy(made, batch[1].float())


def squared(model: nn.Module, batch: Pair) -> Tensor:
    """The mean squared error of one number."""
    return F.mse_loss(model(batch[0]).flatten(), batch[1].float())


def raw(load: str) -> Pair:
    """Return measurements of scikit-learn in their own units."""
    x, y = getattr(scikit(), f"load_{load}")(return_X_y=True)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def doubtful(model: nn.Module, data: Pair) -> Callable[[], float]:
    """Part of the yes and no that a probability gets wrong."""

    def error() -> float:
        with torch.no_grad():
            return (model(data[0]).flatten() > 0.5).ne(data[1] > 0).float().mean().item()

    return error


def trained(
    model: nn.Module, optimizer: Any, loss: Any, data: Pair, error: Callable[[], float], seed: int
) -> Training:
    size = 32
    return fit(model, optimizer, loss, batches(data, size, seed=seed), error=error, harm=error)


@HERE.each(
    cause("softmax_over_one_unit", *UNREACHED, follows=UNHEALTHY),
    cause("relu_before_the_loss", *UNREACHED, "dead_units", follows=UNHEALTHY),
    cause("rate_of_sgd_is_30", *TOO_HIGH, follows=UNHEALTHY),
    cause("measurements_unscaled", *UNSCALED, follows=UNHEALTHY),
)
def two_classes(fault: str) -> Training:
    """Tumors; 33969059, 42800203, 31880720; 48251943, 44066044; 48385830; 39525358."""
    last = {"softmax_over_one_unit": nn.Softmax(-1), "relu_before_the_loss": nn.ReLU()}
    model = dense(30, 16, 1, last=last.get(fault, nn.Sigmoid()))
    data = raw("breast_cancer") if fault == "measurements_unscaled" else cancer()
    if fault == "relu_before_the_loss":
        model[2].get_parameter("bias").data.fill_(-0.5)
    optimizer: Any = optim.Adam(model.parameters(), lr=3e-3)
    if fault == "rate_of_sgd_is_30":
        optimizer = optim.SGD(model.parameters(), lr=30.0)
    return trained(model, optimizer, binary, data, doubtful(model, data), 611)


@HERE.each(
    cause("sigmoid_before_a_regression", *UNREACHED, follows=UNHEALTHY),
    cause("targets_unscaled", *UNSCALED, *TOO_LOW, follows=UNHEALTHY),
    cause("rate_is_too_high", *TOO_HIGH, follows=UNHEALTHY),
    cause("rate_is_too_low", *TOO_LOW, follows=UNHEALTHY),
)
def one_number(fault: str) -> Training:
    """Progress of a disease; 48221692; 52800582, 46642627; 48934338, 37624102; 51181393."""
    last = nn.Sigmoid() if fault == "sigmoid_before_a_regression" else nn.Identity()
    model = dense(10, 32, 1, last=last)
    x, y = diabetes()
    rates = {"rate_is_too_high": 3.0, "rate_is_too_low": 1e-5}
    data = (x, raw("diabetes")[1]) if fault == "targets_unscaled" else (x, y)
    optimizer = optim.SGD(model.parameters(), lr=rates.get(fault, 0.05))
    error = off(model, data)
    if fault == "targets_unscaled":
        scale = data[1].double().var().item()
        return trained(model, optimizer, squared, data, lambda: error() / scale, 612)
    return trained(model, optimizer, squared, data, error, 612)


@HERE.each(
    cause("relu_before_cross_entropy", "activation_before_loss", *UNREACHED, follows=UNHEALTHY),
    cause("pixels_up_to_255", *UNSCALED, follows=UNHEALTHY),
    cause("rate_of_adam_is_1e-5", *TOO_LOW, follows=UNHEALTHY),
    cause("plain_sgd_at_0.001", *TOO_LOW, follows=UNHEALTHY),
)
def ten_digits(fault: str) -> Training:
    """Digits; 47352366; 55328966; 50306988, 44164749; 34311586, 56380303."""
    last = nn.ReLU() if fault == "relu_before_cross_entropy" else nn.Softmax(-1)
    model = dense(64, 48, 10, last=last)
    x, y = digits()
    data = (255 * x, y) if fault == "pixels_up_to_255" else (x, y)
    optimizer: Any = optim.Adam(model.parameters(), lr=2e-3)
    if fault == "rate_of_adam_is_1e-5":
        optimizer = optim.Adam(model.parameters(), lr=1e-5)
    if fault == "plain_sgd_at_0.001":
        optimizer = optim.SGD(model.parameters(), lr=1e-3)
    loss = cross_entropy if fault == "relu_before_cross_entropy" else log_loss
    return trained(model, optimizer, loss, data, misread(model, data), 613)


@HERE.each(
    cause("sigmoids_in_ten_layers", "vanishing_gradient", "vanishing_with_depth"),
    cause("ten_layers_of_five_units", "dead_units", "silent_inputs", "constant_outputs"),
    cause("mean_squared_error_of_classes", "squared_error_of_classes", follows=UNHEALTHY),
)
def three_flowers(fault: str) -> Training:
    """Flowers; 39217567; 46995209, 34673164; 38648195, 45442843."""
    hidden: type[nn.Module] = nn.ReLU
    widths: tuple[int, ...] = (4, 16, 16, 3)
    if fault == "sigmoids_in_ten_layers":
        hidden, widths = nn.Sigmoid, (4, *[16] * 10, 3)
    if fault == "ten_layers_of_five_units":
        widths = (4, *[5] * 10, 3)
    model = dense(*widths, hidden=hidden, last=nn.Softmax(-1))
    loss = one_hot_error if fault == "mean_squared_error_of_classes" else log_loss
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return trained(model, optimizer, loss, iris(), misread(model, iris()), 614)


@HERE.each(
    cause("cross_entropy_of_one_unit", "nothing_to_learn", *UNREACHED, follows=UNHEALTHY),
    cause("targets_divided_by_255", "targets_out_of_scale", "constant_targets", follows=UNHEALTHY),
    cause("every_row_is_alike", "collapsed_batch", "constant_outputs", follows=UNHEALTHY),
    cause("one_epoch_is_too_few", "stopped_early", follows=UNHEALTHY),
)
def three_wines(fault: str) -> Training:
    """Wines; 58609115, 50481178; 59325381; 58237726; 37213388, 48594888."""
    x, y = wine()
    n_out = {"cross_entropy_of_one_unit": 1}.get(fault, 3)
    last: nn.Module = nn.Sigmoid() if n_out == 1 else nn.Softmax(-1)
    model = dense(13, 16, n_out, last=last)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    wrong = misread(model, (x, y))
    given: Pair = x, y
    loss: Callable[[nn.Module, Pair], Tensor] = log_loss
    if fault == "cross_entropy_of_one_unit":
        given = x, (y > 0).float().unsqueeze(-1)
    if fault == "targets_divided_by_255":
        given, loss, model[-1] = (x, (y / 255).long()), cross_entropy, nn.Identity()
    if fault == "every_row_is_alike":
        uniform = itertools.cycle(_uniform(x, y))
        return fit(model, optimizer, loss, uniform, error=wrong, harm=wrong)
    if fault == "one_epoch_is_too_few":
        found = batches(given, 32, seed=615)
        return fit(model, optimizer, loss, found, n_steps=len(x) // 32, error=wrong, harm=wrong)
    return trained(model, optimizer, loss, given, wrong, 615)


def _uniform(x: Tensor, y: Tensor) -> Iterator[Pair]:
    """Yield batches of one row again and again, as where the rows of a generator are batches."""
    for row, kind in zip(x[:40], y[:40], strict=True):
        yield row.expand(32, -1), kind.expand(32)


@HERE.each(cause("no_activations", "affine_network", follows=UNHEALTHY))
def exclusive_or(fault: str) -> Training:
    """Exclusive or of the signs of two numbers; 48385830, 42514960."""
    x = torch.randn(512, 2, generator=torch.Generator().manual_seed(616))
    data = x, (x[:, 0] * x[:, 1] < 0).float()
    hidden = nn.Identity if fault else nn.ReLU
    model = dense(2, 16, 16, 1, hidden=hidden, last=nn.Sigmoid())
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    return trained(model, optimizer, binary, data, doubtful(model, data), 616)
