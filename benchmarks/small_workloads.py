"""Models of very different size and kind, each with one training step on a fixed batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.workloads import WORKLOADS, Workload, small_gpt

__all__ = ["SIZES"]


def _trained(model: nn.Module, inputs: Tensor, n_classes: int) -> Workload:
    labels = torch.randint(0, n_classes, (len(inputs),))
    return Workload(model, torch.optim.SGD(model.parameters(), lr=0.01), inputs, labels)


def perceptron() -> Workload:
    """Two linear layers of width 16, batch 8: all that a step takes is Python."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    return _trained(model, torch.randn(8, 4), 2)


def deep() -> Workload:
    """48 linear layers of width 16, each with a Tanh: modules without work."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(48)]
    return _trained(nn.Sequential(*blocks, nn.Linear(16, 2)), torch.randn(32, 16), 2)


def lenet() -> Workload:
    """Two convolutions and two linear layers, batch 32 of 1 x 28 x 28."""
    torch.manual_seed(0)
    features = nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
    )
    head = nn.Sequential(nn.Flatten(), nn.Linear(512, 120), nn.ReLU(), nn.Linear(120, 10))
    return _trained(nn.Sequential(features, head), torch.randn(32, 1, 28, 28), 10)


class _Gcn(nn.Module):
    """Two layers of a graph convolution (Kipf and Welling 2017), the graph a dense matrix."""

    def __init__(self, n_nodes: int, n_in: int) -> None:
        super().__init__()
        edges = (torch.rand(n_nodes, n_nodes) < 0.02).float() + torch.eye(n_nodes)
        self.register_buffer("averaged", edges / edges.sum(1, keepdim=True))
        self.first, self.second = nn.Linear(n_in, 64), nn.Linear(64, 7)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        averaged = self.get_buffer("averaged")
        return averaged @ self.second(self.act(averaged @ self.first(x)))


def gcn() -> Workload:
    """A graph network on 500 nodes."""
    torch.manual_seed(0)
    return _trained(_Gcn(500, 128), torch.randn(500, 128), 7)


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lstm() -> Workload:
    """An LSTM of width 64 over 32 steps, batch 16."""
    torch.manual_seed(0)
    return _trained(_Lstm(), torch.randn(16, 32, 32), 10)


def tiny_gpt() -> Workload:
    """A GPT of 3 blocks of width 64, batch 4 x 32."""
    return small_gpt(width=64, n_blocks=3, batch=4, context=32)


SIZES = {
    "perceptron": perceptron,
    "48 layers": deep,
    "LeNet": lenet,
    "GCN": gcn,
    "LSTM": lstm,
    "tiny GPT": tiny_gpt,
    **WORKLOADS,
}
"""The smallest first, by what a step takes."""
