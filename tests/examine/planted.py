"""Programs of which one line is changed, as modules whose source Python can show."""

from __future__ import annotations

import linecache
import types
from itertools import count

import torch
from torch import Tensor

from notebook_probe.examine.operations.comparing import first_difference, made
from notebook_probe.examine.operations.first_difference import FirstDifference
from notebook_probe.examine.subject import Arguments

__all__ = ["CONVOLUTIONS", "DECODER", "compared", "line_of", "program"]

NUMBERS = count()

DECODER = """
import math
import torch
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2)
        scores = scores / math.sqrt(d // self.heads)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        scores = scores.masked_fill(mask, -torch.inf)
        weights = scores.softmax(-1)
        weights = self.drop(weights)
        out = weights @ v
        out = out.transpose(1, 2).reshape(b, t, d)
        return self.proj(out)

class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.ln2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)
        self.act = nn.GELU()

    def forward(self, x):
        h = self.attn(self.ln1(x))
        x = x + h
        h = self.ln2(x)
        h = self.act(self.up(h))
        h = self.down(h)
        x = x + h
        return x

class Decoder(nn.Module):
    def __init__(self, vocab=17, d=16, heads=2, n=1, t=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(t, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(n))
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        x = self.emb(tokens) + self.pos(places)
        for block in self.blocks:
            x = block(x)
        x = self.ln(x)
        return self.head(x)

def loss(output, targets):
    output = output.flatten(0, 1)
    targets = targets.flatten()
    return F.cross_entropy(output, targets)

def make():
    torch.manual_seed(3)
    return Decoder()
"""

CONVOLUTIONS = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = x - x.mean()
        h = F.relu(self.norm(self.conv1(x)))
        h = h + F.relu(self.conv2(h))
        h = F.max_pool2d(h, 4)
        h = h.flatten(1)
        return self.fc(h)

def loss(output, targets):
    return F.cross_entropy(output, targets)

def make():
    torch.manual_seed(3)
    return Net()
"""


def program(source: str) -> types.ModuleType:
    """Return a program as a module; its source lines can be shown in a traceback."""
    name = f"planted_{next(NUMBERS)}"
    file = f"/planted/{name}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    module = types.ModuleType(name)
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def line_of(source: str, text: str) -> int:
    """Return the number of the first line that begins with this text."""
    lines = (line.strip() for line in source.splitlines())
    return next(i for i, line in enumerate(lines, 1) if line.startswith(text))


def batch(source: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    if source is CONVOLUTIONS:
        return torch.randn(4, 1, 8, 8, generator=generator), torch.arange(4)
    tokens = torch.randint(0, 17, (2, 4, 8), generator=generator)
    return tokens[0], tokens[1]


def compared(source: str, before: str, after: str) -> FirstDifference:
    """Compare a program with one in which a text is replaced."""
    assert before in source
    this, other = program(source), program(source.replace(before, after, 1))
    x, y = batch(source)
    models = made(this.make), made(other.make)
    return first_difference(*models, Arguments.of(x), y, this.loss, other.loss)
