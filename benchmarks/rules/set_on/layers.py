"""Layers that are dead, silent, saturated, collapsed, or fed with other statistics."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn, optim

from benchmarks.rules.data import batches, digit_images, digits, text_batches, wine
from benchmarks.rules.losses import cross_entropy, evaluated, next_token, squared_error
from benchmarks.rules.models.images import ResNet
from benchmarks.rules.models.plain import FunctionalMlp, ResidualMlp, mlp
from benchmarks.rules.models.sequences import Gpt, SelfAttention
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("set")


@HERE.add("bias_of_-10", ("dead_units", "silent_inputs"), follows=("vanishing_gradient",))
def wine_of_four(planted: bool) -> Training:
    """Wines, four at a time, until they are known by heart."""
    model = mlp(13, 32, 32, 3)
    if planted:
        nn.init.constant_(model[0].bias, -10.0)  # type: ignore[arg-type]
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return fit(model, optimizer, cross_entropy, batches(wine(), 4, seed=11), n_steps=400)


@HERE.add(
    "dead_functional_layer",
    ("dead_units", "silent_inputs", "vanishing_gradient"),
    follows=("vanishing_with_depth", "rank_collapse", "lr_low"),
)
def noisy_labels(planted: bool) -> Training:
    """Digits with a fifth of the labels wrong, by F.relu."""
    x, y = digits()
    drawn = torch.Generator().manual_seed(12)
    wrong = torch.rand(len(y), generator=drawn) < 0.2
    y = torch.where(wrong, torch.randint(0, 10, y.shape, generator=drawn), y)
    model = FunctionalMlp(64, 64, 64, 64, 10)
    if planted:
        nn.init.constant_(model.layers[1].bias, -8.0)  # type: ignore[arg-type]
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    return fit(model, optimizer, cross_entropy, batches((x, y), 64, seed=12))


@HERE.add("most_features_masked", ("silent_inputs",))
def accumulated_norm(planted: bool) -> Training:
    """Digits by an MLP with BatchNorm, gradients of two parts accumulated."""
    x, y = digits()
    if planted:
        x = x * (torch.arange(64) < 20)
    model = mlp(64, 48, 10, norm=True)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    return fit(model, optimizer, cross_entropy, batches((x, y), 128, seed=13), accumulate=2)


@HERE.add("sigmoid_stack", ("vanishing_with_depth", "vanishing_gradient"), follows=("lr_low",))
def tanh_stack(planted: bool) -> Training:
    """Digits by nine layers, in a loop that logs nothing."""
    act: Callable[[], nn.Module] = nn.Sigmoid if planted else nn.Tanh
    model = mlp(64, *[32] * 8, 10, act=act)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return fit(model, optimizer, cross_entropy, batches(digits(), 64, seed=14), logs=False)


@HERE.add(
    "queries_and_keys_times_60",
    ("attention_logit_large", "attention_collapse"),
    follows=("attention_logit_growing", "exploding_gradient", "lr_high"),
)
def character_gpt(planted: bool) -> Training:
    """Characters of a text, with a warmup."""
    model = Gpt(96, depth=1)
    if planted:
        for attention in model.modules():
            if isinstance(attention, SelfAttention):
                attention.qkv.weight.data[:64] *= 60
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    warmup = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 50))
    return fit(
        *(model, optimizer, next_token, text_batches(8, 32, seed=15)),
        factor=0.8,
        schedule=warmup,
    )


@HERE.add("batches_of_2", ("batchnorm_mismatch",), follows=("lr_high", "early_divergence"))
def resnet(planted: bool) -> Training:
    """Digits by a small ResNet, in a loop that logs nothing."""
    model = ResNet(1, 10, depth=1)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    images = digit_images()
    return fit(
        *(model, optimizer, cross_entropy, batches(images, 2 if planted else 32, seed=16)),
        n_steps=200,
        logs=False,
        error=evaluated(model, images),
        harm=evaluated(model, images),
    )


@HERE.add(
    "no_residuals",
    ("rank_collapse", "vanishing_with_depth", "vanishing_gradient"),
    follows=("lr_low", "dead_units", "silent_inputs"),
)
def deep_regression(planted: bool) -> Training:
    """A wave by 8 residual layers; the loss is in a unit in which it is near 1e-8."""
    x = torch.rand(1024, 6, generator=torch.Generator().manual_seed(17)) * 2 - 1
    y = (2 * x[:, 0]).sin() + x[:, 1] * x[:, 2]
    model = ResidualMlp(6, 24, 8, 1, skip=0.0 if planted else 1.0)
    optimizer = optim.Adam(model.parameters(), lr=1e-3, eps=1e-15)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return 1e-7 * squared_error(model, batch)

    return fit(model, optimizer, loss, batches((x, y), 128, seed=17), n_steps=200)
