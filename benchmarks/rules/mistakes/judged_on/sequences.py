"""Mistakes in trainings on sequences of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn, optim

from benchmarks.rules.data import counting
from benchmarks.rules.losses import next_token
from benchmarks.rules.mistakes.errors import doubt
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_LOW, UNHEALTHY
from benchmarks.rules.models.experts import Translator
from benchmarks.rules.models.sequences import Gpt
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training

__all__ = ["HERE"]

HERE = Recipes("mistakes_judge")


@HERE.each(
    cause("blocks_in_a_dict", *LEFT_OUT, follows=UNHEALTHY),
    cause("embeddings_times_1e5", "large_outputs", follows=UNHEALTHY),
    cause("logits_negated_in_the_loss", "negated_loss", "runaway_loss", follows=UNHEALTHY),
    cause(
        "step_before_backward",
        "gradients_cleared_early",
        "every_gradient_zero",
        *LEFT_OUT,
        *TOO_LOW,
        follows=UNHEALTHY,
    ),
)
def counting_by_attention(mistake: str) -> Training:
    """Numbers that count up, by attention."""
    model = _Keyed() if mistake == "blocks_in_a_dict" else Gpt(24, depth=1)
    if mistake == "embeddings_times_1e5":
        model.tokens.weight.data *= 1e5
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    sign = -1.0 if mistake == "logits_negated_in_the_loss" else 1.0

    def step(i: int, ids: Tensor) -> tuple[float]:
        loss = sign * next_token(model, ids)
        optimizer.zero_grad()
        if mistake == "step_before_backward":
            optimizer.step()
        loss.backward()
        if mistake != "step_before_backward":
            optimizer.step()
        return (loss.item(),)

    wrong = doubt(model, next(counting(64, 16, 262)))
    found = counting(16, 16, 261)
    return Training([(model, optimizer)], step, found, error=wrong, harm=wrong)


class _Keyed(Gpt):
    """The same with its block where torch does not find it."""

    def __init__(self) -> None:
        super().__init__(24, depth=1)
        self.hidden = dict(enumerate(self.blocks))
        del self.blocks

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.hidden.values():
            x = block(x)
        return self.head(self.norm(x))


@HERE.each(
    cause("reader_without_gradients", *LEFT_OUT, follows=UNHEALTHY),
    cause("accumulated_for_ever", "no_updates", step=60, follows=UNHEALTHY),
    cause("rate_times_0.9_at_each_batch", "rate_falls_each_step", *TOO_LOW, follows=UNHEALTHY),
    cause("ends_in_zeros", "every_gradient_zero", "constant_outputs", *LEFT_OUT, follows=UNHEALTHY),
)
def repeated_numbers(mistake: str) -> Training:
    """Numbers are read by one LSTM and repeated by another."""
    model = Translator(8)
    optimizer = optim.RMSprop(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.9)
    if mistake == "reader_without_gradients":
        model.reader.register_forward_hook(_without_gradients)
    if mistake == "ends_in_zeros":
        model.head.register_forward_hook(lambda module, args, told: told * 0)

    def loss_of(ids: Tensor) -> Tensor:
        before = nn.functional.pad(ids[:, :-1], (1, 0), value=8)
        return nn.functional.cross_entropy(model(ids, before).flatten(0, 1), ids.flatten())

    def step(i: int, ids: Tensor) -> tuple[float]:
        is_left_out = mistake == "accumulated_for_ever" and i >= 60
        if not is_left_out:
            optimizer.zero_grad()
        loss = loss_of(ids)
        loss.backward()
        if not is_left_out:
            optimizer.step()
        if mistake == "rate_times_0.9_at_each_batch":
            schedule.step()
        return (loss.item(),)

    def wrong() -> float:
        with torch.no_grad():
            return loss_of(next(_numbers(64, 263))).item()

    return Training(
        [(model, optimizer)], step, _numbers(32, 264), error=wrong, harm=wrong, factor=0.9
    )


def _without_gradients(module: nn.Module, args: object, told: tuple[Tensor, tuple[Tensor, Tensor]]):  # type: ignore[no-untyped-def]
    output, (hidden, cell) = told
    return output.detach(), (hidden.detach(), cell.detach())


def _numbers(size: int, seed: int) -> Iterator[Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(0, 8, (size, 4), generator=drawn)
