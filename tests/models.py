"""Small models of every kind a user has, with batches that suit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

AnyModel = TypeVar("AnyModel", bound=nn.Module)


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


class ConvNet(nn.Module):
    """BatchNorm, in-place ReLU, an in-place residual sum, a view: all that hooks trip over."""

    def __init__(self, inplace: bool = True) -> None:
        super().__init__()
        self.inplace = inplace
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=inplace)
        self.pool = nn.AvgPool2d(2)
        self.head = nn.Linear(4 * 9, 3)

    def forward(self, images: Tensor) -> Tensor:
        first = self.relu(self.norm1(self.conv1(images)))
        second = self.norm2(self.conv2(first))
        if self.inplace:
            second += first
        else:
            second = second + first
        return self.head(self.pool(self.relu(second)).flatten(1))


class HooksItself(nn.Module):
    """Puts hooks on its parts in its first call and notes that, as those of Hugging Face do."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.heard, self.is_hooked = mlp(), list[str](), False

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_hooked:
            self.is_hooked = True
            self.body[0].register_forward_hook(self.hear, with_kwargs=True, always_call=True)
            self.body[1].register_forward_pre_hook(self.hear, with_kwargs=True)
        return self.body(x)

    def hear(self, module: nn.Module, *_: Any) -> None:
        self.heard.append(type(module).__name__)


class Tagger(nn.Module):
    """An LSTM, whose output is a tuple with a tuple in it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.lstm(self.embed(words))
        return self.head(states)


class Encoder(nn.Module):
    """Self-attention with dropout: whoever draws a random number too many is found out."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.layer(self.embed(words)))


class Tied(nn.Module):
    """The decoder's weight is the embedding's."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.decoder = nn.Linear(4, 7, bias=False)
        self.decoder.weight = self.embed.weight

    def forward(self, words: Tensor) -> Tensor:
        return self.decoder(self.embed(words))


class Heads(nn.Module):
    """Returns a dict, as language models do; one of its entries is None."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.logits = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor | None]:
        hidden = self.body(x).tanh()
        return {"hidden": hidden, "logits": self.logits(hidden), "cache": None}


class Residual(nn.Module):
    """Two layers, each added to what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = x + self.first(x).tanh()
        return hidden + self.last(hidden).tanh()


@dataclass
class Prediction:
    """What a forward may return: tensors in an object of the user's own."""

    logits: Tensor
    hidden: tuple[Tensor, ...] = ()
    note: str = "text"


class Shared(nn.Module):
    """One linear layer called twice in a forward."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(4, 4)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.twice(self.relu(self.twice(x)))


def normal(seed: int, *shape: int) -> Tensor:
    """Normal numbers, the same for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def floats(*shape: int) -> Callable[[int], Tensor]:
    """Normal batches of this shape, the same for the same step."""
    return lambda step: normal(step, *shape)


def words(step: int) -> Tensor:
    return torch.randint(0, 7, (3, 5), generator=torch.Generator().manual_seed(step))


@dataclass(frozen=True)
class Case:
    """A kind of model and its batches."""

    build: Callable[[], nn.Module]
    batch: Callable[[int], Tensor]


CASES = {
    "convolution": Case(ConvNet, floats(4, 1, 6, 6)),
    "recurrent": Case(Tagger, words),
    "transformer": Case(Encoder, words),
    "mlp": Case(mlp, floats(5, 4)),
    "tied": Case(Tied, words),
    "dict": Case(Heads, floats(5, 4)),
    "shared": Case(Shared, floats(5, 4)),
}


def made(build: Callable[[], AnyModel], seed: int = 1) -> AnyModel:
    """A model whose weights depend on nothing but the seed."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed notes a traceback each time
    return build()


def loss_of(output: Any) -> Tensor:
    """A scalar in which every float of the output has its part."""
    if isinstance(output, Tensor):
        return (output - 0.3).square().mean()
    parts = output.values() if isinstance(output, Mapping) else output
    return sum((loss_of(part) for part in parts if part is not None), torch.zeros(()))


def mean_square(output: Any, targets: Any) -> Tensor:
    """`loss_of` as a loss function that takes targets, which it leaves alone."""
    return loss_of(output)


def equal(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same parameters bit for bit."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def sgd(model: nn.Module, lr: float = 0.1) -> Optimizer:
    return SGD(model.parameters(), lr=lr)


def train_step(model: nn.Module, optimizer: Optimizer, batch: Tensor) -> float:
    """What a user's loop does for one batch."""
    optimizer.zero_grad()
    loss = loss_of(model(batch))
    loss.backward()
    optimizer.step()
    return loss.item()


def train(
    model: nn.Module, optimizer: Optimizer, batch: Callable[[int], Tensor], steps: Iterable[int]
) -> None:
    for step in steps:
        train_step(model, optimizer, batch(step))
