"""Mistakes in trainings on text."""

from __future__ import annotations

import torch
from torch import Tensor, nn, optim

from benchmarks.rules.data import N_CHARACTERS, text, text_batches
from benchmarks.rules.losses import next_token
from benchmarks.rules.mistakes.errors import doubt
from benchmarks.rules.mistakes.expected import LEFT_OUT, TOO_LOW, UNHEALTHY
from benchmarks.rules.models.sequences import Gpt
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit

__all__ = ["HERE"]

HERE = Recipes("mistakes_set")


def _pieces() -> Tensor:
    return text()[: 40 * 25].view(40, 25)


@HERE.each(
    cause("embedding_detached", *LEFT_OUT, follows=UNHEALTHY),
    cause("rate_of_1e-9", *TOO_LOW, follows=UNHEALTHY),
    cause("schedule_at_each_batch", "rate_falls_each_step", *TOO_LOW, follows=UNHEALTHY),
    cause("loss_times_0", "every_gradient_zero", "nothing_to_learn", follows=UNHEALTHY),
)
def letters_by_lstm(mistake: str) -> Training:
    """The next letter of a text, by an LSTM."""
    model = _Letters(detached=mistake == "embedding_detached")
    optimizer = optim.Adam(model.parameters(), lr=1e-9 if mistake == "rate_of_1e-9" else 5e-3)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
    factor = 0.0 if mistake == "loss_times_0" else 1.0

    def loss(model: nn.Module, ids: Tensor) -> Tensor:
        return factor * next_token(model, ids)

    wrong = doubt(model, _pieces())
    return fit(
        *(model, optimizer, loss, text_batches(12, 24, seed=221)),
        clip=1.0,
        schedule=schedule if mistake == "schedule_at_each_batch" else None,
        error=wrong,
        harm=wrong,
    )


class _Letters(nn.Module):
    def __init__(self, *, detached: bool) -> None:
        super().__init__()
        self.detached = detached
        self.letters = nn.Embedding(N_CHARACTERS, 32)
        self.rnn, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, N_CHARACTERS)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.letters(ids)
        return self.head(self.rnn(x.detach() if self.detached else x)[0])


@HERE.each(
    cause("blocks_in_a_list", *LEFT_OUT, follows=UNHEALTHY),
    cause("queries_times_60", "attention_logit_large", "attention_collapse", follows=UNHEALTHY),
    cause("sign_of_the_loss", "negated_loss", "runaway_loss", follows=UNHEALTHY),
    cause("updates_left_out", "no_updates", step=60, follows=UNHEALTHY),
)
def letters_by_gpt(mistake: str) -> Training:
    """The next letter of a text, by attention."""
    model = _Listed() if mistake == "blocks_in_a_list" else Gpt(N_CHARACTERS)
    if mistake == "queries_times_60":
        for block in model.blocks:
            block.get_submodule("attn").get_submodule("qkv").get_parameter("weight").data *= 60
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    sign = -1.0 if mistake == "sign_of_the_loss" else 1.0

    def step(i: int, ids: Tensor) -> tuple[float]:
        optimizer.zero_grad()
        loss = sign * next_token(model, ids)
        loss.backward()
        if mistake != "updates_left_out" or i < 60:
            optimizer.step()
        return (loss.item(),)

    wrong = doubt(model, _pieces())
    found = text_batches(8, 24, seed=222)
    return Training([(model, optimizer)], step, found, error=wrong, harm=wrong, factor=0.8)


class _Listed(Gpt):
    """The same with its blocks where torch does not find them."""

    def __init__(self) -> None:
        super().__init__(N_CHARACTERS)
        self.hidden = [*self.blocks]
        del self.blocks

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.hidden:
            x = block(x)
        return self.head(self.norm(x))
