"""Mistakes in trainings that tell numbers, make inputs again, or use few bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.data import batches, diabetes, digits
from benchmarks.rules.losses import reconstruction
from benchmarks.rules.mistakes.errors import misread, off, unlike
from benchmarks.rules.mistakes.expected import TOO_LOW, UNHEALTHY
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.points import moons
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("mistakes_set")


@HERE.each(
    cause("row_minus_column", "broadcast_loss", follows=UNHEALTHY),
    cause("targets_times_1e6", "targets_out_of_scale", follows=UNHEALTHY),
    cause("ends_in_relu", "targets_out_of_range", follows=UNHEALTHY),
    cause("decay_of_10", "weights_shrink", follows=UNHEALTHY),
)
def patients(mistake: str) -> Training:
    """Progress of a disease, from ten measurements."""
    model = mlp(10, 32, 32, 1)
    if mistake == "ends_in_relu":
        model.append(nn.ReLU())
    decay = 10.0 if mistake == "decay_of_10" else 0.01
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=decay)
    x, y = diabetes()
    y = 1e6 * y if mistake == "targets_times_1e6" else y

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        told = model(batch[0])
        return ((told if mistake == "row_minus_column" else told[:, 0]) - batch[1]).square().mean()

    wrong = off(model, (x, y))
    return fit(
        *(model, optimizer, loss, batches((x, y), 34, seed=211)),
        error=wrong,
        harm=wrong,
        factor=0.8,
    )


@HERE.each(
    cause("dropout_stays_on", "dropout_in_evaluation", follows=UNHEALTHY),
    cause("one_row_for_all", "collapsed_batch", follows=UNHEALTHY),
    cause("log_of_0", "nonfinite_from_loss", step=100, follows=UNHEALTHY),
    cause("codes_averaged_over_the_batch", "constant_outputs", follows=UNHEALTHY),
)
def remade_digits(mistake: str) -> Training:
    """Digits, made again from 16 numbers, looked at every 20 steps."""
    model = _Autoencoder(mistake)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    x, _ = digits()

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            model(x[:100])
        model.train()

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        found = reconstruction(model, (batch[0], batch[0]))
        return found + (0 * found).log() if spoiled else found

    before: dict[int, Callable[[], None]] = dict.fromkeys(range(20, 240, 20), evaluate)
    spoiled: list[int] = []
    wrong = unlike(model, x)
    if mistake == "log_of_0":
        before[100] = lambda: spoiled.append(100)
    return fit(
        *(model, optimizer, loss, _first(mistake == "one_row_for_all")),
        before=before,
        error=wrong,
        harm=wrong,
    )


class _Autoencoder(nn.Module):
    def __init__(self, mistake: str) -> None:
        super().__init__()
        self.mistake = mistake
        self.encoder, self.decoder = mlp(64, 48, 16), mlp(16, 48, 64)

    def forward(self, x: Tensor) -> Tensor:
        code = self.encoder(x)
        if self.mistake == "codes_averaged_over_the_batch":
            code = code.mean(0, keepdim=True).expand_as(code)
        stays = self.mistake == "dropout_stays_on"
        return self.decoder(
            F.dropout(code, 0.3 if stays else 0.05, training=stays or self.training)
        )


def _first(repeated: bool) -> Iterator[tuple[Tensor, ...]]:
    for x, y in batches(digits(), 64, seed=212):
        yield (x[:1].expand_as(x), y) if repeated else (x, y)


@HERE.each(
    cause("weights_in_bfloat16", "step_without_effect", *TOO_LOW, follows=UNHEALTHY),
    cause("weights_in_float64", "autocast_ignored", follows=UNHEALTHY),
    cause("loss_overflows", "updates_skipped", "nonfinite_loss", step=60, follows=UNHEALTHY),
    cause("rate_of_0", *TOO_LOW, step=60, follows=UNHEALTHY),
)
def moons_in_few_bits(mistake: str) -> Training:
    """Two half circles, in 16 bits where that is safe."""
    model = mlp(2, 48, 48, 2)
    if mistake == "weights_in_bfloat16":
        model.bfloat16()
    if mistake == "weights_in_float64":
        model.double()
    rate = 1e-5 if mistake == "weights_in_bfloat16" else 0.1
    optimizer = optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=10_000)
    data = moons(1000, 213)

    def step(i: int, batch: tuple[Tensor, Tensor]) -> tuple[float]:
        optimizer.zero_grad()
        x, y = batch[0].to(next(model.parameters()).dtype), batch[1]
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        if mistake == "loss_overflows" and i >= 60:
            loss = loss * 1e38
        if mistake == "rate_of_0" and i == 60:
            optimizer.param_groups[0]["lr"] = 0.0
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return (loss.item(),)

    wrong = misread(model, data)
    found = batches(data, 50, seed=213)
    size = float(sum(one.nbytes for one in model.parameters()))
    harm = (lambda: size) if mistake == "weights_in_float64" else wrong
    return Training([(model, optimizer)], step, found, error=wrong, harm=harm)
