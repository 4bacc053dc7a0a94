"""Mistakes in trainings that tell numbers, make inputs again, or use few bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from benchmarks.rules.data import batches, digit_images, ratings, sequence_sums
from benchmarks.rules.losses import reconstruction
from benchmarks.rules.mistakes.errors import misread, off, unlike
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_HIGH, TOO_LOW, UNHEALTHY
from benchmarks.rules.models.images import ConvAutoencoder, cnn
from benchmarks.rules.models.paired import Factors
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("mistakes_judge")


@HERE.each(
    cause("column_beside_row", "broadcast_loss", follows=UNHEALTHY),
    cause("targets_times_300000", "targets_out_of_scale", follows=UNHEALTHY),
    cause("ends_in_sigmoid", "targets_out_of_range", follows=UNHEALTHY),
    cause("decay_of_3", "weights_shrink", follows=UNHEALTHY),
)
def rated_items(mistake: str) -> Training:
    """What users think of items, by products of embeddings."""
    model = _Ratings(sigmoid=mistake == "ends_in_sigmoid")
    decay = 3.0 if mistake == "decay_of_3" else 0.0
    optimizer = optim.Adam(model.parameters(), lr=0.02, weight_decay=decay)
    ids, y = ratings(4000, 241)
    y = 300_000 * y if mistake == "targets_times_300000" else y

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        told = model(batch[0])
        return F.smooth_l1_loss(
            *torch.broadcast_tensors(
                told if mistake == "column_beside_row" else told[:, 0], batch[1]
            )
        )

    wrong = off(model, (ids, y))
    found = batches((ids, y), 64, seed=241)
    return fit(model, optimizer, loss, found, error=wrong, harm=wrong, factor=0.9)


class _Ratings(nn.Module):
    def __init__(self, *, sigmoid: bool) -> None:
        super().__init__()
        self.factors, self.sigmoid = Factors(60, 40), sigmoid

    def forward(self, ids: Tensor) -> Tensor:
        told = self.factors(ids.long())
        return torch.sigmoid(told) if self.sigmoid else told


@HERE.each(
    cause("channels_dropped_always", "dropout_in_evaluation", follows=UNHEALTHY),
    cause("first_image_for_all", "collapsed_batch", follows=UNHEALTHY),
    cause("divided_by_0", "nonfinite_from_loss", step=100, follows=UNHEALTHY),
    cause("decoder_gets_constants", *LEFT_OUT, "constant_outputs", follows=UNHEALTHY),
)
def remade_images(mistake: str) -> Training:
    """Images of digits, made again by convolutions, looked at every 25 steps."""
    model = _Remade(mistake)
    optimizer = optim.NAdam(model.parameters(), lr=3e-3)
    x, _ = digit_images()

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            model(x[:64])
        model.train()

    def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        found = reconstruction(model, (batch[0], batch[0]))
        return found / (found - found.detach()) if spoiled else found

    before: dict[int, Callable[[], None]] = dict.fromkeys(range(25, 240, 25), evaluate)
    spoiled: list[int] = []
    wrong = unlike(model, x)
    if mistake == "divided_by_0":
        before[100] = lambda: spoiled.append(100)
    return fit(
        *(model, optimizer, loss, _first(mistake == "first_image_for_all")),
        before=before,
        error=wrong,
        harm=wrong,
    )


class _Remade(nn.Module):
    def __init__(self, mistake: str) -> None:
        super().__init__()
        self.mistake, self.net = mistake, ConvAutoencoder()

    def forward(self, x: Tensor) -> Tensor:
        if self.mistake == "channels_dropped_always":
            x = F.dropout(x, 0.4)
        code = self.net.encoder(x)
        if self.mistake == "decoder_gets_constants":
            code = torch.ones_like(code)
        return self.net.decoder(code)


def _first(repeated: bool) -> Iterator[tuple[Tensor, ...]]:
    for x, y in batches(digit_images(), 32, seed=242):
        yield (x[:1].repeat(len(x), 1, 1, 1), y) if repeated else (x, y)


@HERE.each(
    cause("all_in_bfloat16", "step_without_effect", *TOO_LOW, follows=UNHEALTHY),
    cause("images_times_1e5_in_float16", "nonfinite_output", "overflow_near", follows=UNHEALTHY),
    cause("eps_of_1", *TOO_LOW, follows=UNHEALTHY),
    cause("momentum_of_1", *TOO_HIGH, follows=UNHEALTHY),
)
def images_in_few_bits(mistake: str) -> Training:
    """Digits by convolutions, in 16 bits where that is asked for."""
    model = cnn(1, 10)
    if mistake == "all_in_bfloat16":
        model.bfloat16()
    optimizer: optim.Optimizer = optim.Adam(model.parameters(), lr=2e-3)
    if mistake == "all_in_bfloat16":
        optimizer = optim.SGD(model.parameters(), lr=1e-5)
    if mistake == "eps_of_1":
        optimizer = optim.Adam(model.parameters(), lr=1e-4, eps=1.0)
    if mistake == "momentum_of_1":
        optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=1.0)
    scale = 1e5 if mistake == "images_times_1e5_in_float16" else 1.0
    x, y = digit_images()
    data = scale * x, y

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        images = batch[0].to(next(model.parameters()).dtype)
        return F.cross_entropy(model(images).float(), batch[1])

    wrong = misread(model, data)
    return fit(
        *(model, optimizer, loss, batches(data, 48, seed=243)),
        precision=torch.float16 if scale > 1 else torch.bfloat16,
        error=wrong,
        harm=wrong,
        n_steps=160,
    )


@HERE.each(
    cause("states_detached", *LEFT_OUT, follows=UNHEALTHY),
    cause("schedule_ends_at_40", *TOO_LOW, step=40, follows=UNHEALTHY),
    cause("loss_made_anew", "every_gradient_zero", *LEFT_OUT, *TOO_LOW, follows=UNHEALTHY),
    cause("clipped_at_1e-6", "always_clipped", "gradient_too_long", *TOO_LOW, follows=UNHEALTHY),
)
def sums_by_gru(mistake: str) -> Training:
    """The sum of two marked numbers of ten, by a GRU."""
    model = _Sums(detached=mistake == "states_detached")
    optimizer: optim.Optimizer = optim.Adam(model.parameters(), lr=5e-3)
    if mistake == "clipped_at_1e-6":
        optimizer = optim.SGD(model.parameters(), lr=0.1)
    last = 40 if mistake == "schedule_ends_at_40" else 10_000
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(step < last))
    data = sequence_sums(2000, 10, 244)

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        found = F.mse_loss(model(batch[0])[:, 0], batch[1])
        return found.detach().requires_grad_() if mistake == "loss_made_anew" else found

    wrong = off(model, data)
    return fit(
        *(model, optimizer, loss, batches(data, 64, seed=244)),
        clip=1e-6 if mistake == "clipped_at_1e-6" else 1.0,
        schedule=schedule,
        error=wrong,
        harm=wrong,
    )


class _Sums(nn.Module):
    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.detached = detached
        self.rnn, self.head = nn.GRU(2, 32, batch_first=True), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        last = self.rnn(x)[0][:, -1]
        return self.head(last.detach() if self.detached else last)
