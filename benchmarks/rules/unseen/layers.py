"""Layers that are dead, silent, equal in every unit, saturated, or far from their statistics."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.data import batches, cancer, digit_images, digits
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.models.images import Segmenter, discs
from benchmarks.rules.models.patches import PatchTransformer, mixer
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.waves import Dilated, signals
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("unseen")


@HERE.add(
    "bias_of_-10_in_the_middle",
    ("dead_units", "silent_inputs"),
    follows=("vanishing_gradient", "vanishing_with_depth", "rank_collapse", "lr_low"),
)
def segmented_discs(planted: bool) -> Training:
    """Which pixels are of a disc, by a network that goes down, up, and across."""
    model = Segmenter()
    if planted:
        model.middle.get_parameter("bias").data.fill_(-10.0)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.binary_cross_entropy_with_logits(model(batch[0]), batch[1])

    return fit(model, optimizer, loss, batches(discs(512, 111), 16, seed=111), n_steps=160)


@HERE.add("weights_of_0.02", ("vanishing_with_depth", "vanishing_gradient"), follows=("lr_low",))
def dilated_forecast(planted: bool) -> Training:
    """The next value of a signal, by causal convolutions."""
    model = Dilated()
    if planted:
        for conv in model.convs:
            nn.init.normal_(conv.get_parameter("weight"), std=0.02)
    optimizer = optim.Adagrad(model.parameters(), lr=0.02)

    def loss(model: nn.Module, batch: tuple[Tensor]) -> Tensor:
        (wave,) = batch
        return F.mse_loss(model(wave[..., :-1]), wave[..., 1:])

    return fit(model, optimizer, loss, batches(signals(512, 64, 112), 16, seed=112))


@HERE.add(
    "queries_and_keys_times_20",
    ("attention_logit_large", "attention_collapse"),
    follows=("attention_logit_growing", "rank_collapse", "exploding_gradient", "lr_low"),
)
def patches_in_one_cycle(planted: bool) -> Training:
    """Digits in patches, with dropout, smoothed labels, and a rate that goes up and down."""
    model = PatchTransformer()
    if planted:
        for layer in model.layers:
            layer.get_parameter("self_attn.in_proj_weight").data[:64] *= 20
    optimizer = optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    cycle = optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=260)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch[0]), batch[1], label_smoothing=0.1)

    found = batches(digit_images(), 64, seed=113)
    return fit(model, optimizer, loss, found, schedule=cycle)


@HERE.add("momentum_of_0.0001", ("batchnorm_mismatch",), follows=("batchnorm_momentum",))
def three_questions(planted: bool) -> Training:
    """Whether a digit is odd, large, prime, by layers with BatchNorm."""
    model = mlp(64, 64, 64, 3, norm=True)
    for layer in model:
        if planted and isinstance(layer, nn.BatchNorm1d):
            layer.momentum = 1e-4
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    x, y = digits()
    prime = torch.isin(y, torch.tensor([2, 3, 5, 7]))
    answers = torch.stack([y % 2 == 1, y > 4, prime], -1).float()

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.binary_cross_entropy_with_logits(model(batch[0]), batch[1])

    def evaluated() -> float:
        model.eval()
        with torch.no_grad():
            found = loss(model, (x, answers)).item()
        model.train()
        return found

    return fit(
        *(model, optimizer, loss, batches((x, answers), 64, seed=114)),
        error=evaluated,
        harm=evaluated,
    )


@HERE.add("all_weights_equal", ("rank_collapse",), follows=("vanishing_gradient", "lr_low"))
def tumours(planted: bool) -> Training:
    """Tumours by four layers with GELU."""
    model = mlp(30, 64, 64, 64, 2, act=nn.GELU)
    for layer in model:
        if planted and isinstance(layer, nn.Linear):
            nn.init.constant_(layer.weight, 0.05)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return fit(model, optimizer, cross_entropy, batches(cancer(), 48, seed=115))


@HERE.add("two_colours_lost", ("silent_inputs",))
def colours_and_digits(planted: bool) -> Training:
    """Which colour a digit has and whether it is odd, by convolutions of channels alone."""
    x, y = digit_images()
    colour = torch.randint(0, 3, (len(x),), generator=torch.Generator().manual_seed(116))
    images = x * F.one_hot(colour, 3)[:, :, None, None]
    if planted:
        images[:, 1:] = 0
    model = mixer(3, 6)
    optimizer = optim.RAdam(model.parameters(), lr=5e-3)
    found = batches((images, colour + 3 * (y % 2)), 64, seed=116)
    return fit(model, optimizer, cross_entropy, found, n_steps=160)
