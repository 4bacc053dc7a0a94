"""Small data that comes with scikit-learn or is drawn here, and its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "batches",
    "cancer",
    "changed",
    "counting",
    "diabetes",
    "digit_images",
    "digits",
    "iris",
    "ratings",
    "scikit",
    "sequence_sums",
    "text",
    "text_batches",
    "wine",
]

Pair = tuple[Tensor, Tensor]
N_CHARACTERS = 96


@cache
def scikit() -> Any:
    """Return scikit-learn's data sets: to list the trainings need not wait for their import."""
    from sklearn import datasets

    return datasets


@cache
def digits() -> Pair:
    """1,797 images of digits as 64 pixels from 0 to 1; ten classes."""
    x, y = scikit().load_digits(return_X_y=True)
    return torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)


def digit_images() -> Pair:
    """The same as images of one channel."""
    x, y = digits()
    return x.view(-1, 1, 8, 8), y


def wine() -> Pair:
    """178 wines, 13 standardised measurements; three classes."""
    return _classes(scikit().load_wine)


def cancer() -> Pair:
    """569 tumours, 30 standardised measurements; two classes."""
    return _classes(scikit().load_breast_cancer)


def diabetes() -> Pair:
    """442 patients, 10 standardised measurements; one standardised number."""
    x, y = scikit().load_diabetes(return_X_y=True)
    return _standard(x), _standard(y)


def iris() -> Pair:
    """150 flowers, 4 standardised measurements; three classes."""
    return _classes(scikit().load_iris)


def ratings(n: int, seed: int) -> Pair:
    """Users and items, 60 and 40 of them, and what ones think of the others."""
    drawn = torch.Generator().manual_seed(seed)
    users, items = torch.randn(60, 3, generator=drawn), torch.randn(40, 3, generator=drawn)
    ids = torch.stack([torch.randint(0, k, (n,), generator=drawn) for k in (60, 40)], -1)
    return ids, (users[ids[:, 0]] * items[ids[:, 1]]).sum(-1)


def counting(size: int, length: int, seed: int) -> Iterator[Tensor]:
    """Numbers below 24 that count up by a step that each row has to itself."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        start, by = torch.randint(0, 24, (2, size, 1), generator=drawn)
        yield (start + (1 + by % 5) * torch.arange(length + 1)) % 24


def sequence_sums(n: int, length: int, seed: int) -> Pair:
    """Random numbers with two marked among them, whose sum is asked for (the adding problem)."""
    drawn = torch.Generator().manual_seed(seed)
    values = torch.rand(n, length, generator=drawn)
    first = torch.randint(0, length // 2, (n,), generator=drawn)
    second = torch.randint(length // 2, length, (n,), generator=drawn)
    rows = torch.arange(n)
    marks = torch.zeros(n, length)
    marks[rows, first] = marks[rows, second] = 1.0
    return torch.stack([values, marks], -1), values[rows, first] + values[rows, second]


@cache
def text() -> Tensor:
    """The descriptions of scikit-learn's data sets, a character each."""
    loaders = (scikit().load_digits, scikit().load_wine, scikit().load_breast_cancer)
    words = "\n".join(loader().DESCR for loader in loaders).encode("ascii", "ignore")
    return torch.from_numpy(np.frombuffer(words, np.uint8).astype(np.int64) - 31).clamp(
        0, N_CHARACTERS - 1
    )


def text_batches(size: int, length: int, seed: int) -> Iterator[Tensor]:
    """Pieces of the text, one token longer than what the model sees."""
    drawn, ids = torch.Generator().manual_seed(seed), text()
    while True:
        starts = torch.randint(0, len(ids) - length - 1, (size, 1), generator=drawn)
        yield ids[starts + torch.arange(length + 1)]


def batches(data: tuple[Tensor, ...], size: int, seed: int) -> Iterator[tuple[Tensor, ...]]:
    """Epoch after epoch in another order; what does not fill a batch is left out."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        for chosen in torch.randperm(len(data[0]), generator=drawn).split(size):
            if len(chosen) == size:
                yield tuple(tensor[chosen] for tensor in data)


def changed(found: Iterator[Any], at: Mapping[int, Callable[[Any], Any]]) -> Iterator[Any]:
    """The same batches, some of them changed, by their number."""
    for i, batch in enumerate(found):
        yield at[i](batch) if i in at else batch


def _classes(load: Callable[..., Any]) -> Pair:
    x, y = load(return_X_y=True)
    return _standard(x), torch.tensor(y)


def _standard(values: Any) -> Tensor:
    scaled = (values - values.mean(0)) / values.std(0)
    return torch.tensor(scaled, dtype=torch.float32)
