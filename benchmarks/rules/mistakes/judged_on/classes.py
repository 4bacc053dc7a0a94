"""Mistakes in trainings that tell classes apart."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.data import batches, cancer, changed, digit_images, digits, wine
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.mistakes.errors import misjudged, misread
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_HIGH, TOO_LOW, UNHEALTHY
from benchmarks.rules.models.patches import PatchTransformer
from benchmarks.rules.models.plain import FunctionalMlp, ResidualMlp
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit, keep_gradients

__all__ = ["HERE"]

HERE = Recipes("mistakes_judge")


@HERE.each(
    cause("softmax_as_last_activation", "activation_before_loss", follows=UNHEALTHY),
    cause("cleared_once", "uncleared_gradients", follows=UNHEALTHY),
    cause("layer_appended_later", *LEFT_OUT, step=30, follows=UNHEALTHY),
    cause("measurements_times_3000", "large_outputs", follows=UNHEALTHY),
)
def wines_by_selu(mistake: str) -> Training:
    """Makers of wines, by layers with functions as activations."""
    model = _Wines(softmax=mistake == "softmax_as_last_activation")
    optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    scale = 3000 if mistake == "measurements_times_3000" else 1
    x, y = wine()
    data = scale * x, y

    def append() -> None:
        model.last = nn.Sequential(nn.SELU(), nn.Linear(3, 3))

    wrong = misread(model, data)
    return fit(
        *(model, optimizer, cross_entropy, batches(data, 32, seed=231)),
        prepare=keep_gradients if mistake == "cleared_once" else Optimizer.zero_grad,
        before={30: append} if mistake == "layer_appended_later" else {},
        error=wrong,
        harm=wrong,
    )


class _Wines(nn.Module):
    def __init__(self, *, softmax: bool) -> None:
        super().__init__()
        self.softmax = softmax
        self.body, self.last = FunctionalMlp(13, 32, 32, 3, act=F.selu), nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        told = self.last(self.body(x))
        return F.softmax(told, dim=1) if self.softmax else told


@HERE.each(
    cause("validated_as_in_training", "evaluated_in_training_mode", follows=UNHEALTHY),
    cause("eval_before_the_loop", "trained_in_evaluation_mode", follows=UNHEALTHY),
    cause("rate_of_1", *TOO_HIGH, follows=UNHEALTHY),
    cause("warm_up_without_an_end", *TOO_LOW, follows=UNHEALTHY),
)
def digits_in_patches(mistake: str) -> Training:
    """Digits by a transformer with Dropout, validated every 30 steps."""
    model = PatchTransformer()
    model.train(mistake != "eval_before_the_loop")
    rate = 1.0 if mistake == "rate_of_1" else 2e-3
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    slope = 1e7 if mistake == "warm_up_without_an_end" else 10
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / slope))
    x, y = digit_images()

    def validate() -> None:
        was_training = model.training
        model.train(mistake == "validated_as_in_training")
        with torch.no_grad():
            F.cross_entropy(model(x[:128]), y[:128])
        model.train(was_training)

    wrong = misread(model, (x, y))
    return fit(
        *(model, optimizer, cross_entropy, batches((x, y), 32, seed=232)),
        schedule=schedule,
        before=dict.fromkeys(range(30, 240, 30), validate),
        error=wrong,
        harm=wrong,
    )


@HERE.each(
    cause("functional_sigmoid_before_logits", "activation_before_loss", follows=UNHEALTHY),
    cause("labels_of_1_and_2", "targets_out_of_range", follows=UNHEALTHY),
    cause("value_is_infinite", "nonfinite_batch", step=90, follows=UNHEALTHY),
    cause(
        "features_lost",
        "silent_inputs",
        "tiny_inputs",
        "collapsed_batch",
        step=60,
        follows=UNHEALTHY,
    ),
)
def tumors_by_residuals(mistake: str) -> Training:
    """Benign tumors, by a stack of residual layers."""
    model = ResidualMlp(30, 24, 4, 1)
    optimizer = optim.Adamax(model.parameters(), lr=2e-3)
    x, y = cancer()
    lowest = 1.0 if mistake == "labels_of_1_and_2" else 0.0

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        told = model(batch[0])[:, 0]
        if mistake == "functional_sigmoid_before_logits":
            told = torch.sigmoid(told)
        return F.binary_cross_entropy_with_logits(told, batch[1].float() + lowest)

    def infinite(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x = batch[0].clone()
        x[0, 7] = float("inf")
        return x, batch[1]

    def lost(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(batch[0]), batch[1]

    found = batches((x, y), 48, seed=233)
    if mistake == "value_is_infinite":
        found = changed(found, {90: infinite})
    if mistake == "features_lost":
        found = changed(found, dict.fromkeys(range(60, 300), lost))
    wrong = misjudged(model, (x, y))
    return fit(model, optimizer, loss, found, error=wrong, harm=wrong)


@HERE.each(
    cause("nll_of_logits", "no_log_before_nll", follows=UNHEALTHY),
    cause("ten_sigmoids", "vanishing_gradient", "vanishing_with_depth", follows=UNHEALTHY),
    cause(
        "weights_of_0",
        "equal_units",
        "every_gradient_zero",
        "rank_collapse",
        *TOO_LOW,
        follows=UNHEALTHY,
    ),
    cause("hook_at_each_batch", "hooks_pile_up", follows=UNHEALTHY),
)
def digits_by_log_softmax(mistake: str) -> Training:
    """Digits by plain layers and a negative log-likelihood."""
    model = _plain(mistake)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    seen: list[int] = []

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        if mistake == "hook_at_each_batch":
            handle = model.get_submodule("0").register_full_backward_hook(
                lambda module, before, after: seen.append(1)
            )
            del handle
        told = model(batch[0])
        return F.nll_loss(told if mistake == "nll_of_logits" else told.log_softmax(-1), batch[1])

    wrong = misread(model, digits())
    counted: Callable[[], float] = lambda: float(len(seen))  # noqa: E731
    return fit(
        *(model, optimizer, loss, batches(digits(), 48, seed=234)),
        error=wrong,
        harm=counted if mistake == "hook_at_each_batch" else wrong,
    )


def _plain(mistake: str) -> nn.Sequential:
    depth, act = (10, nn.Sigmoid) if mistake == "ten_sigmoids" else (2, nn.ReLU)
    layers: list[nn.Module] = [nn.Linear(64, 40), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(40, 40), act()]
    model = nn.Sequential(*layers, nn.Linear(40, 10))
    if mistake == "weights_of_0":
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
    return model
