"""Mistakes in trainings that tell classes apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.data import batches, cancer, changed, digit_images, digits, iris
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.mistakes.errors import misjudged, misread
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_HIGH, TOO_LOW, UNHEALTHY
from benchmarks.rules.models.adapted import pretrain
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit, keep_gradients

__all__ = ["HERE"]

HERE = Recipes("mistakes_set")


@HERE.each(
    cause("softmax_in_the_model", "activation_before_loss", follows=UNHEALTHY),
    cause("never_cleared", "uncleared_gradients", follows=UNHEALTHY),
    cause("head_after_the_optimizer", *LEFT_OUT, follows=UNHEALTHY),
    cause("pixels_times_10000", "large_outputs", follows=UNHEALTHY),
)
def dense_digits(mistake: str) -> Training:
    """Digits by three linear layers."""
    model = mlp(64, 48, 48, 10)
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    if mistake == "head_after_the_optimizer":
        model[-1] = nn.Linear(48, 10)
    if mistake == "softmax_in_the_model":
        model.append(nn.Softmax(-1))
    scale = 10_000 if mistake == "pixels_times_10000" else 1
    x, y = digits()
    prepare = keep_gradients if mistake == "never_cleared" else Optimizer.zero_grad
    wrong = misread(model, (scale * x, y))
    found = batches((scale * x, y), 64, seed=201)
    return fit(model, optimizer, cross_entropy, found, prepare=prepare, error=wrong, harm=wrong)


@HERE.each(
    cause("evaluated_as_in_training", "evaluated_in_training_mode", follows=UNHEALTHY),
    cause("left_in_evaluation", "trained_in_evaluation_mode", step=40, follows=UNHEALTHY),
    cause("rate_times_100", *TOO_HIGH, "rate_jump", step=80, follows=UNHEALTHY),
    cause(
        "statistics_hardly_follow", "batchnorm_momentum", "batchnorm_mismatch", follows=UNHEALTHY
    ),
)
def convolved_digits(mistake: str) -> Training:
    """Digits by convolutions with BatchNorm and Dropout, evaluated now and then."""
    momentum = 1e-4 if mistake == "statistics_hardly_follow" else 0.1
    model = nn.Sequential(
        *(nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12, momentum=momentum), nn.ReLU()),
        *(nn.Conv2d(12, 12, 3), nn.BatchNorm2d(12, momentum=momentum), nn.ReLU()),
        *(nn.Flatten(), nn.Dropout(0.3), nn.Linear(192, 10)),
    )
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    x, y = digit_images()

    def evaluate() -> None:
        model.train(mistake == "evaluated_as_in_training")
        with torch.no_grad():
            model(x[:200])
        model.train(mistake != "left_in_evaluation")

    def jump() -> None:
        optimizer.param_groups[0]["lr"] *= 100

    before: dict[int, Callable[[], None]] = dict.fromkeys(range(40, 240, 20), evaluate)
    if mistake == "rate_times_100":
        before[80] = jump
    wrong = misread(model, (x, y))
    return fit(
        *(model, optimizer, cross_entropy, batches((x, y), 32, seed=202)),
        before=before,
        error=wrong,
        harm=wrong,
    )


@HERE.each(
    cause("sigmoid_before_logits", "activation_before_loss", follows=UNHEALTHY),
    cause("targets_of_minus_1", "targets_out_of_range", follows=UNHEALTHY),
    cause("value_is_missing", "nonfinite_batch", step=60, follows=UNHEALTHY),
    cause("bias_of_-10", "dead_units", "silent_inputs", follows=UNHEALTHY),
)
def tumors_by_logits(mistake: str) -> Training:
    """Benign tumors, by one number."""
    model = mlp(30, 32, 16, 1)
    if mistake == "bias_of_-10":
        model[2].get_parameter("bias").data.fill_(-10.0)
    if mistake == "sigmoid_before_logits":
        model.append(nn.Sigmoid())
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    x, y = cancer()
    lowest = -1.0 if mistake == "targets_of_minus_1" else 0.0

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        wanted = torch.where(batch[1] > 0, 1.0, lowest)
        return F.binary_cross_entropy_with_logits(model(batch[0]).squeeze(-1), wanted)

    def incomplete(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return batch[0].clone().index_fill_(0, torch.tensor([3]), float("nan")), batch[1]

    wrong = misjudged(model, (x, y))
    found = batches((x, y), 32, seed=203)
    if mistake == "value_is_missing":
        found = changed(found, {60: incomplete})
    return fit(model, optimizer, loss, found, error=wrong, harm=wrong)


@HERE.each(
    cause("softmax_before_nll", "no_log_before_nll", follows=UNHEALTHY),
    cause("weights_times_100", "large_outputs", "vanishing_gradient", follows=UNHEALTHY),
    cause("layer_made_in_forward", "layers_made_in_forward", *LEFT_OUT, follows=UNHEALTHY),
    cause("hook_at_each_step", "hooks_pile_up", follows=UNHEALTHY),
)
def flowers_by_tanh(mistake: str) -> Training:
    """Kinds of flowers, by tanh and negative log-likelihood."""
    model = _Flowers(mistake)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    seen: list[float] = []

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        if mistake == "hook_at_each_step":
            model.get_submodule("first").register_forward_hook(
                lambda module, args, output: seen.append(output.detach().mean().item())
            )
        return F.nll_loss(model(batch[0]), batch[1])

    wrong = misread(model, iris())
    harm = (lambda: len(seen)) if mistake == "hook_at_each_step" else wrong
    return fit(model, optimizer, loss, batches(iris(), 30, seed=204), error=wrong, harm=harm)


class _Flowers(nn.Module):
    def __init__(self, mistake: str) -> None:
        super().__init__()
        self.mistake = mistake
        self.first, self.second, self.head = nn.Linear(4, 24), nn.Linear(24, 24), nn.Linear(24, 3)
        if mistake == "weights_times_100":
            for layer in (self.first, self.second):
                layer.weight.data *= 100

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        second = nn.Linear(24, 24) if self.mistake == "layer_made_in_forward" else self.second
        told = self.head(torch.tanh(second(x)))
        return told.softmax(-1) if self.mistake == "softmax_before_nll" else told.log_softmax(-1)


@HERE.each(
    cause("norms_alone_train", "only_norms_train", follows=UNHEALTHY),
    cause("frozen_and_moved_by_decay", "frozen_but_moving", step=60, follows=UNHEALTHY),
    cause(
        "cleared_before_the_step",
        *("gradients_cleared_early", "every_gradient_zero", *LEFT_OUT, *TOO_LOW),
        follows=UNHEALTHY,
    ),
    cause("body_without_gradients", *LEFT_OUT, follows=UNHEALTHY),
)
def finetuned_digits(mistake: str) -> Training:
    """Digits that are turned upside down, by a network that knew them upright."""
    model = _Finetuned()
    pretrain(model, digits())
    model.is_cut = mistake == "body_without_gradients"
    x, y = digits()
    turned = x.flip(-1), y
    if mistake == "norms_alone_train":
        for module in [*model.body, model.head]:
            module.requires_grad_(isinstance(module, nn.BatchNorm1d))
    parameters = (p for p in model.parameters() if p.requires_grad)
    optimizer = optim.AdamW(parameters, lr=2e-3)
    frozen: list[Tensor] = []
    weight = model.body[0].get_parameter("weight")

    def freeze() -> None:
        weight.requires_grad_(False)
        frozen.append(weight.detach().clone())

    def moved() -> float:
        return (weight - frozen[0]).norm().item() if frozen else 0.0

    def backward(loss: Tensor) -> None:
        loss.backward()
        if mistake == "cleared_before_the_step":
            optimizer.zero_grad()

    wrong = misread(model, turned)
    moves = mistake == "frozen_and_moved_by_decay"
    return fit(
        *(model, optimizer, cross_entropy, batches(turned, 64, seed=205)),
        before={60: freeze} if moves else {},
        backward=backward,
        prepare=partial(Optimizer.zero_grad, set_to_none=not moves),
        error=wrong,
        harm=moved if moves or not mistake else wrong,
    )


class _Finetuned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        net = mlp(64, 48, 48, 10, norm=True)
        self.head = net.pop(-1)
        self.body, self.is_cut = net, False

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_cut):
            x = self.body(x)
        return self.head(x)
