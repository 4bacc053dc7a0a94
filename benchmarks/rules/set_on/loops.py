"""Loops that train the wrong thing, too much, too little, or one of two."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.data import batches, digit_images, digits, sequence_sums
from benchmarks.rules.losses import cross_entropy, squared_error
from benchmarks.rules.models.adapted import pretrain, with_lora
from benchmarks.rules.models.gan import LOSSES, N_NOISE, Adversaries, noisy_ring, spread
from benchmarks.rules.models.images import cnn
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.models.sequences import Recurrent
from benchmarks.rules.recipe import Recipes
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("set")


@HERE.add("clipped_at_0.001", ("always_clipped",), follows=("lr_low",))
def lstm_sums(planted: bool) -> Training:
    """Two marked numbers of a sequence are added, by an LSTM whose gradient is clipped."""
    model = Recurrent(nn.LSTM(2, 32, batch_first=True), 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return fit(
        *(model, optimizer, squared_error, batches(sequence_sums(2048, 12, seed=31), 32, seed=31)),
        clip=1e-3 if planted else 2.0,
    )


@HERE.add("a_is_zero_too", ("untrained_adapter", "vanishing_gradient"), follows=("lr_low",))
def lora_digits(planted: bool) -> Training:
    """A network that knows the digits 0 to 4 learns the others by adapters."""
    x, y = digits()
    base = mlp(64, 64, 64, 10)
    pretrain(base, (x[y < 5], y[y < 5]))
    model = with_lora(base)
    if planted:
        for name, weight in model.named_parameters():
            if "lora_A" in name:
                nn.init.zeros_(weight)
    adapters = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = optim.AdamW(adapters, lr=5e-3)
    return fit(model, optimizer, cross_entropy, batches((x, y), 64, seed=32))


@HERE.add(
    "head_replaced_too_late",
    ("lr_low", "untrained_adapter", "not_in_optimizer", "cut_off", "stale_probe"),
    follows=("exploding_gradient",),
)
def new_head(planted: bool) -> Training:
    """A frozen backbone gets a new head, in a loop that logs nothing."""
    x, y = digit_images()
    model = cnn(1, 5)
    pretrain(model, (x[y < 5], y[y < 5]))
    model[:2].requires_grad_(False)
    too_early = optim.Adam(model.parameters(), lr=2e-3)
    model[-1] = nn.Linear(model[-1].in_features, 5)  # type: ignore[arg-type]
    optimizer = too_early if planted else optim.Adam(model[2:].parameters(), lr=2e-3)
    others = x[y >= 5], y[y >= 5] - 5
    return fit(model, optimizer, cross_entropy, batches(others, 48, seed=33), logs=False)


@HERE.add(
    "discriminator_wins",
    ("one_sided_gan", "generator_behind"),
    follows=("vanishing_gradient", "exploding_gradient", "diverging_loss", "lr_high", "loss_spike"),
)
def ring_gan(planted: bool) -> Training:
    """Points of a ring, by two perceptrons."""
    generator = mlp(N_NOISE, 32, 32, 2)
    discriminator = mlp(2, 32, 32, 1, act=lambda: nn.LeakyReLU(0.2))
    of_g = optim.Adam(generator.parameters(), lr=1e-5 if planted else 2e-3, betas=(0.5, 0.99))
    of_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.99))
    watched: list[tuple[nn.Module, Optimizer]] = [(generator, of_g), (discriminator, of_d)]
    step = Adversaries(generator, discriminator, of_g, of_d)

    def error() -> float:
        return spread(generator)

    found = noisy_ring(64, seed=34)
    return Training(watched, step, found, 300, error=error, harm=error, parts=LOSSES)


class _Words(nn.Module):
    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.words, self.head = nn.Linear(n_words, 32), nn.Linear(32, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.gelu(self.words(x)))


@HERE.add("made_word_by_word", ("loader_bound",), step=60)
def bags_of_words(planted: bool) -> Training:
    """Counts of 400 words, of which most are in no text; the loader counts them."""
    drawn = torch.Generator().manual_seed(35)
    y = torch.randint(0, 2, (2048,), generator=drawn)
    often = torch.tensor([[0.02, 0.03]]).T * torch.rand(2, 400, generator=drawn) ** 4
    x = torch.bernoulli(often[y], generator=drawn)
    model = _Words(400)
    optimizer = optim.SGD(model.parameters(), lr=0.3)
    found = _Counted(batches((x, y), 64, seed=35), from_batch=60 if planted else None)
    return fit(model, optimizer, cross_entropy, found, harm=lambda: found.n_counted, factor=0.8)


class _Counted(Iterator[tuple[Tensor, ...]]):
    """Batches, each of whose words are put together one by one, again and again."""

    def __init__(self, found: Iterator[tuple[Tensor, ...]], from_batch: int | None) -> None:
        self._found, self._from, self._n, self.n_counted = found, from_batch, 0, 0.0

    def __next__(self) -> tuple[Tensor, ...]:
        x, y = next(self._found)
        if self._from is not None and self._n >= self._from:
            self.n_counted += sum(
                float(word) for _ in range(2) for row in x.tolist() for word in row
            )
        self._n += 1
        return x, y
