"""Models of our own that are built as those of libraries are: packed, in place, checkpointed."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from tests.libraries.case import N_WORDS, Batch, Case, images, words

__all__ = ["CASES"]


class PackedTagger(nn.Module):
    """Two LSTM layers over sequences of different length."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(N_WORDS, 16)
        self.lstm = nn.LSTM(16, 12, num_layers=2, dropout=0.2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(states)


class Residual(nn.Module):
    """A block of a ResNet; the sum and the activations overwrite what came before."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(n_out), nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            convolution = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        y += self.shortcut(x)
        return self.relu(y)


def resnet() -> nn.Module:
    blocks = [Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1), Residual(16, 32, 2)]
    stem = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5)]
    return nn.Sequential(*stem, *blocks, *head)


class DenseLayer(nn.Module):
    """Norm, ReLU, convolution of everything before it; the first two are done again in backward."""

    def __init__(self, n_in: int, growth: int, checkpointed: bool) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(n_in), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(n_in, growth, 3, padding=1, bias=False)
        self.drop = nn.Dropout2d(0.2)
        self.checkpointed = checkpointed

    def forward(self, features: list[Tensor]) -> Tensor:
        if self.checkpointed:
            grown = checkpoint(self._grow, *features, use_reentrant=False)
        else:
            grown = self._grow(*features)
        return self.drop(grown)

    def _grow(self, *features: Tensor) -> Tensor:
        return self.conv(self.relu(self.norm(torch.cat(features, 1))))


class DenseNet(nn.Module):
    """Two dense blocks of three layers."""

    def __init__(self, checkpointed: bool, growth: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.first = self._block(8, growth, checkpointed)
        self.transition = nn.Sequential(nn.Conv2d(8 + 3 * growth, 8, 1), nn.AvgPool2d(2))
        self.second = self._block(8, growth, checkpointed)
        self.head = nn.Linear(8 + 3 * growth, 5)

    @staticmethod
    def _block(n_in: int, growth: int, checkpointed: bool) -> nn.ModuleList:
        sizes = (n_in + i * growth for i in range(3))
        return nn.ModuleList(DenseLayer(size, growth, checkpointed) for size in sizes)

    def forward(self, images: Tensor) -> Tensor:
        first = self._dense(self.first, self.stem(images))
        second = self._dense(self.second, self.transition(first))
        return self.head(second.mean((2, 3)))

    @staticmethod
    def _dense(block: nn.ModuleList, features: Tensor) -> Tensor:
        found = [features]
        for layer in block:
            found.append(layer(found))
        return torch.cat(found, 1)


def tagged(step: int) -> Batch:
    return {"words": words(step), "lengths": torch.tensor([12, 7 - step])}


CASES = {
    "LSTM, packed": Case(PackedTagger, tagged),
    "ResNet, in place": Case(resnet, lambda step: {"input": images(step, 16)}),
    "DenseNet, checkpointed": Case(
        partial(DenseNet, checkpointed=True),
        lambda step: {"images": images(step, 8)},
        plain=partial(DenseNet, checkpointed=False),
    ),
}
