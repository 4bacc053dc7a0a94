"""Layers that are dead, silent, saturated, collapsed, or far from their running statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.consequences import DIVERGED
from benchmarks.rules.data import batches, diabetes, digit_images, digits, sequence_sums, wine
from benchmarks.rules.losses import cross_entropy, evaluated, squared_error
from benchmarks.rules.models.images import FunctionalCnn, ResNet, cnn
from benchmarks.rules.models.paired import alignment, contrast
from benchmarks.rules.models.plain import FunctionalMlp, mlp
from benchmarks.rules.models.sequences import Encoder
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("judge")


@HERE.add(
    "no_weight_above_0",
    ("dead_units", "silent_inputs"),
    follows=("vanishing_gradient", "vanishing_with_depth", "rank_collapse", "lr_low"),
)
def four_convolutions(planted: bool) -> Training:
    """Digits by four convolutions, in a loop that logs nothing."""
    model = cnn(1, 10, depth=4, width=8)
    if planted:
        third = model[4].get_parameter("weight")
        third.data.abs_().neg_()
        model[4].get_parameter("bias").data.fill_(-0.05)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    return fit(model, optimizer, cross_entropy, batches(digit_images(), 32, seed=61), logs=False)


@HERE.add(
    "layer_dies",
    ("dead_units", "silent_inputs", "vanishing_gradient"),
    step=120,
    follows=("vanishing_with_depth", "rank_collapse", "lr_low", "loss_spike"),
)
def large_targets(planted: bool) -> Training:
    """A number of patients as it is, so that the loss begins at 30,000, by F.relu."""
    x, y = diabetes()
    y = 152 + 77 * y
    model = FunctionalMlp(10, 48, 48, 1)
    optimizer = optim.RMSprop(model.parameters(), lr=5e-3)

    def push_below_zero() -> None:
        model.layers[1].get_parameter("weight").data.zero_()
        model.layers[1].get_parameter("bias").data.fill_(-20.0)

    return fit(
        *(model, optimizer, squared_error, batches((x, y), 64, seed=62)),
        before={120: push_below_zero} if planted else {},
    )


@HERE.add("divided_as_integers", ("silent_inputs",), follows=("vanishing_gradient", "lr_low"))
def coloured_digits(planted: bool) -> Training:
    """Digits in colours, from 0 to 255, divided by that."""
    x, y = digit_images()
    drawn = torch.Generator().manual_seed(63)
    colours = 0.3 + 0.7 * torch.rand(len(x), 3, 1, 1, generator=drawn)
    pixels = (250 * x * colours).to(torch.uint8)
    scaled = (pixels // 255).float() if planted else pixels / 255
    model = FunctionalCnn(3)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    return fit(model, optimizer, cross_entropy, batches((scaled, y), 64, seed=63))


@HERE.add("weights_of_0.01", ("vanishing_with_depth", "vanishing_gradient"), follows=("lr_low",))
def deep_wine(planted: bool) -> Training:
    """Wines by seven layers with Tanh, large batches, in a loop that logs nothing."""
    model = mlp(13, *[24] * 6, 3, act=nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear):
            if planted:
                nn.init.normal_(layer.weight, std=0.01)
            else:
                nn.init.xavier_normal_(layer.weight)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    return fit(model, optimizer, cross_entropy, batches(wine(), 89, seed=64), logs=False)


@HERE.add(
    "attention_lr_times_100",
    (
        *("attention_logit_growing", "attention_logit_large", "attention_collapse"),
        *("lr_high", "early_divergence"),
    ),
    step=100,
    follows=DIVERGED,
)
def attending_encoder(planted: bool) -> Training:
    """Two marked numbers are added by nn.MultiheadAttention."""
    x, y = sequence_sums(2048, 16, seed=65)
    model = Encoder(2, 1)
    attention = [*model.attn.parameters()]
    others = [p for name, p in model.named_parameters() if not name.startswith("attn")]
    optimizer = optim.AdamW([{"params": attention}, {"params": others}], lr=2e-3)

    def jump() -> None:
        optimizer.param_groups[0]["lr"] *= 100

    return fit(
        *(model, optimizer, squared_error, batches((x, y), 64, seed=65)),
        before={100: jump} if planted else {},
    )


@HERE.add("momentum_of_0.001", ("batchnorm_mismatch",), follows=("batchnorm_momentum",))
def adam_resnet(planted: bool) -> Training:
    """Digits by a ResNet, accumulated over two parts."""
    model = ResNet(1, 10, depth=1, momentum=0.001 if planted else 0.1)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    images = digit_images()
    return fit(
        *(model, optimizer, cross_entropy, batches(images, 64, seed=66)),
        accumulate=2,
        n_steps=160,
        error=evaluated(model, images),
        harm=evaluated(model, images),
    )


@HERE.add("nothing_pushes_apart", ("rank_collapse",))
def contrasted_views(planted: bool) -> Training:
    """Two noisy views of a digit are told from those of others."""
    model = mlp(64, 64, 64, 16)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    x, _ = digits()

    def likeness() -> float:
        with torch.no_grad():
            found: Tensor = F.normalize(model(x[:256]), dim=-1)
        return (found @ found.T).mean().item()

    loss = alignment if planted else contrast
    return fit(model, optimizer, loss, batches(digits(), 64, seed=67), factor=0.8, harm=likeness)
