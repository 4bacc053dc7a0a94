"""A language model of characters that learns in seconds, of a text that comes with Python."""

from __future__ import annotations

from pydoc_data.topics import topics

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CONTEXT", "CharacterText", "TinyGPT"]

CONTEXT = 32
WIDTH, N_HEADS, N_BLOCKS = 64, 4, 2


class CharacterText:
    """The help texts of Python's own documentation, as numbers of characters."""

    def __init__(self) -> None:
        text = "\n".join(topics.values())
        self.characters = sorted({one for one in text if one.isascii()})
        numbers = {character: number for number, character in enumerate(self.characters)}
        self.encoded = torch.tensor([numbers[one] for one in text if one in numbers])

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Pieces of the text, and of each place the character that comes next."""
        starts = torch.randint(len(self.encoded) - CONTEXT, (size, 1))
        pieces = self.encoded[starts + torch.arange(CONTEXT + 1)]
        return pieces[:, :-1], pieces[:, 1:]


class CausalAttention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(x).unflatten(-1, (3, N_HEADS, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(-2))


class GPTBlock(nn.Module):
    """Attention, then a feed-forward layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = CausalAttention()
        self.expand, self.relu = nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU()
        self.contract = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.contract(self.relu(self.expand(self.norm_2(x))))


class TinyGPT(nn.Module):
    """Two blocks of width 64: what large language models are made of, small."""

    def __init__(self, n_characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_characters, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(GPTBlock() for _ in range(N_BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, n_characters)
        for embedding in (self.embedding, self.position):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, numbers: Tensor) -> Tensor:
        places = torch.arange(numbers.shape[1], device=numbers.device)
        x = self.embedding(numbers) + self.position(places)
        return self.head(self.norm(self.blocks(x)))

    def loss(self, numbers: Tensor, following: Tensor) -> Tensor:
        """Cross entropy of the next character, in nats."""
        return F.cross_entropy(self(numbers).flatten(0, 1), following.flatten())
