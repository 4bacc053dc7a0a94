"""Networks with parts that only their kind of training has."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "Codebook",
    "FewBits",
    "Flow",
    "Pooled",
    "Predicted",
    "Recommended",
    "SkippingMlp",
    "TwoHeads",
    "Writer",
]


class Predicted(nn.Module):
    """An encoder, and what predicts its answer to another view."""

    def __init__(self, encoder: nn.Module, predictor: nn.Module) -> None:
        super().__init__()
        self.encoder, self.predictor = encoder, predictor

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.encoder(x)
        return self.predictor(found), found


class Codebook(nn.Module):
    """An autoencoder whose code, in groups of ``width``, is replaced by the nearest known ones."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, n_codes: int, width: int) -> None:
        super().__init__()
        self.encoder, self.decoder, self.width = encoder, decoder, width
        self.codes = nn.Embedding(n_codes, width)
        nn.init.normal_(self.codes.weight, std=0.3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        told = self.encoder(x)
        groups = told.reshape(-1, self.width)
        chosen = self.codes(torch.cdist(groups, self.codes.weight).argmin(-1)).reshape(told.shape)
        kept = F.mse_loss(chosen, told.detach()) + 0.25 * F.mse_loss(told, chosen.detach())
        return self.decoder(told + (chosen - told).detach()), kept


class Recommended(nn.Module):
    """The margin by which a user prefers the first of two items."""

    def __init__(self, n_users: int, n_items: int, width: int = 8) -> None:
        super().__init__()
        self.users = nn.Embedding(n_users, width, sparse=True)
        self.items = nn.Embedding(n_items, width, sparse=True)

    def forward(self, ids: Tensor) -> Tensor:
        user, better, worse = self.users(ids[:, 0]), self.items(ids[:, 1]), self.items(ids[:, 2])
        return (user * (better - worse)).sum(-1)


class TwoHeads(nn.Module):
    """A trunk with a head for each of two tasks."""

    def __init__(self, n_in: int, width: int, *n_out: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in n_out)

    def forward(self, x: Tensor, task: int) -> Tensor:
        return self.heads[task](self.trunk(x))


class Pooled(nn.Module):
    """An encoder with a pooler of the first token, as in BERT, which the loss does not use."""

    def __init__(self, n_tokens: int, n_out: int, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(n_tokens, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, batch_first=True)
        self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, n_out)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.layer(self.tokens(ids))
        return self.head(x.mean(1)), self.pooler(x[:, 0]).tanh()


class FewBits(nn.Linear):
    """A linear layer whose weights are rounded to some bits; the gradient passes that by."""

    def __init__(self, n_in: int, n_out: int, n_bits: int = 4) -> None:
        super().__init__(n_in, n_out)
        self.n_levels = 2 ** (n_bits - 1) - 1

    def forward(self, x: Tensor) -> Tensor:
        unit = self.weight.detach().abs().amax() / self.n_levels
        rounded = (self.weight / unit).round() * unit
        return F.linear(x, self.weight + (rounded - self.weight).detach(), self.bias)


class Flow(nn.Module):
    """A state that one block moves a dozen times (an ODE by Euler's steps)."""

    def __init__(self, n_in: int, n_out: int, width: int = 32, n_steps: int = 12) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(n_in, width), nn.Linear(width, n_out)
        self.field = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
        self.n_steps = n_steps

    def forward(self, x: Tensor) -> Tensor:
        state = self.stem(x)
        for _ in range(self.n_steps):
            state = state + self.field(state) / self.n_steps
        return self.head(state)


class SkippingMlp(nn.Module):
    """A stack of blocks, each left out of a third of the steps (stochastic depth)."""

    def __init__(self, n_in: int, width: int, depth: int, n_out: int) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(n_in, width), nn.Linear(width, n_out)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
            for _ in range(depth)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            if not self.training or torch.rand(()) > 0.33:
                x = x + block(x)
        return self.head(x)


class Writer(nn.Module):
    """torch's own encoder and decoder, of sequences that are padded with 0."""

    def __init__(self, n_tokens: int, width: int = 32, length: int = 16) -> None:
        super().__init__()
        self.tokens = nn.Embedding(n_tokens, width, padding_idx=0)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.both = nn.Transformer(width, 4, 1, 1, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, n_tokens)

    def forward(self, given: Tensor, before: Tensor) -> Tensor:
        n = before.shape[1]
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        read, written = (self.tokens(ids) + self.places[: ids.shape[1]] for ids in (given, before))
        padded = given == 0
        return self.head(
            self.both(
                *(read, written),
                tgt_mask=later,
                src_key_padding_mask=padded,
                memory_key_padding_mask=padded,
                tgt_key_padding_mask=before == 0,
            )
        )
