"""Trainings of small dense networks, each with something in it that is worth seeing."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot, softmax
from torch.utils.data import DataLoader, TensorDataset

import notebook_probe as nbp
from tools.pictures.digits import digits
from tools.pictures.scene import Watch

__all__ = [
    "classes",
    "deep",
    "diverging",
    "dying",
    "edge",
    "experts",
    "half",
    "micro_batches",
    "residual",
    "sentences",
    "slow_loader",
    "spoilt_data",
]

EDGE_RATE = 0.4


def dying(watch: Watch) -> nbp.Run:
    """SGD with momentum on a network of ReLUs; the rate is 40 times as large from step 50 on."""
    torch.manual_seed(0)
    model = _dense([64, 64, 64, 64, 10], nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.8)
    run = watch(model, optimizer)
    for step, (images, targets) in enumerate(_batches(150, 64)):
        optimizer.param_groups[0]["lr"] = 0.03 if step < 50 else 1.2
        _update(run, optimizer, cross_entropy(model(images), targets))
    return run


def edge(watch: Watch) -> nbp.Run:
    """Gradient descent on all data at once, which rises to the edge of stability."""
    torch.manual_seed(0)
    images, targets = (tensor[:500] for tensor in digits())
    images, wanted = images - images.mean(0), one_hot(targets).float()
    model = _dense([64, 32, 32, 10], nn.Tanh)

    def loss_fn(outputs: Tensor, wanted: Tensor) -> Tensor:
        return 0.5 * (outputs - wanted).square().sum(1).mean()

    optimizer = torch.optim.SGD(model.parameters(), lr=EDGE_RATE)
    run = watch(model, optimizer)
    run.probe_batch(images, wanted, loss_fn)
    for _ in range(1200):
        _update(run, optimizer, loss_fn(model(images), wanted))
    return run


def half(watch: Watch) -> nbp.Run:
    """Mixed precision in float16, with a gradient scaler that looks for its scale."""
    torch.manual_seed(0)
    model = _dense([64] * 5 + [10], nn.Tanh, gain=0.25)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=12)
    run = watch(model, optimizer)
    for images, targets in _batches(150, 64):
        with torch.autocast("cpu", torch.float16):
            loss = cross_entropy(model(images), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        run.log(loss=loss)
    return run


def diverging(watch: Watch) -> nbp.Run:
    """Least squares with a learning rate beyond stability, until numbers run out."""
    torch.manual_seed(0)
    images, targets = (tensor[:200] for tensor in digits())
    model = _dense([64, 32, 10], nn.Identity)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    run = watch(model, optimizer)
    for _ in range(24):
        loss = (model(images + 0.1) - one_hot(targets)).square().sum(1).mean()
        _update(run, optimizer, loss)
    return run


def deep(watch: Watch) -> nbp.Run:
    """Eight tanh layers whose first weights are too small."""
    torch.manual_seed(0)
    model = _dense([64] * 8 + [10], nn.Tanh, gain=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, eps=1e-5)
    run = watch(model, optimizer)
    for images, targets in _batches(150, 64):
        _update(run, optimizer, cross_entropy(model(images), targets))
    return run


class Blocks(nn.Module):
    """Four residual blocks between two linear layers."""

    class Block(nn.Module):
        """Adds a branch to what passes."""

        def __init__(self) -> None:
            super().__init__()
            self.branch = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = x + self.branch(x)
            return y

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*[self.Block() for _ in range(4)])
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.blocks(x))
        return y


def residual(watch: Watch) -> nbp.Run:
    """Four residual blocks."""
    torch.manual_seed(0)
    model = Blocks()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    run = watch(model, optimizer)
    for images, targets in _batches(150, 64):
        _update(run, optimizer, cross_entropy(model(images), targets))
    return run


def classes(watch: Watch) -> nbp.Run:
    """Large batches, until the classes are learnt."""
    torch.manual_seed(0)
    model = _dense([64, 64, 32, 32, 10], nn.ReLU, norm=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run = watch(model, optimizer)
    for images, targets in _batches(150, 512):
        run.batch(targets=targets)
        _update(run, optimizer, cross_entropy(model(images), targets))
    return run


def micro_batches(watch: Watch) -> nbp.Run:
    """Eight micro-batches to a step."""
    torch.manual_seed(0)
    model = _dense([64, 64, 10], nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = watch(model, optimizer)
    batches = _batches(150 * 8, 16)
    for _ in range(150):
        optimizer.zero_grad()
        for _ in range(8):
            images, targets = next(batches)
            (cross_entropy(model(images), targets) / 8).backward()
        optimizer.step()
    return run


class Mixture(nn.Module):
    """Eight experts, of which each sample is given to one."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(64, 8)
        self.experts = nn.ModuleList(nn.Linear(64, 10) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        shares = softmax(self.router(x), 1)
        weight, chosen = shares.max(1)
        self.imbalance = 8 * (one_hot(chosen, 8).float().mean(0) * shares.mean(0)).sum()
        outputs = torch.stack([expert(x) for expert in self.experts], 1)
        y: Tensor = weight[:, None] * outputs[torch.arange(len(x)), chosen]
        return y


def experts(watch: Watch) -> nbp.Run:
    """A mixture of experts; from step 50 on the loss asks for balance."""
    torch.manual_seed(0)
    model = Mixture()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    run = watch(model, optimizer)
    for step, (images, targets) in enumerate(_batches(150, 256)):
        loss = cross_entropy(model(images), targets)
        _update(run, optimizer, loss + 3 * model.imbalance if step >= 50 else loss)
    return run


def slow_loader(watch: Watch) -> nbp.Run:
    """Batches of 32, then of 256; then the loader becomes slow."""
    torch.manual_seed(0)
    model = _dense([64, 512, 512, 10], nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run = watch(model, optimizer)

    images_of_all, targets_of_all = digits()

    def loader() -> Iterator[tuple[Tensor, Tensor]]:
        for step, size in enumerate([32] * 50 + [256] * 100):
            if step >= 100:
                time.sleep(0.05)
            chosen = torch.randint(len(targets_of_all), (size,))
            yield images_of_all[chosen], targets_of_all[chosen]

    for images, targets in run.batches(loader()):
        _update(run, optimizer, cross_entropy(model(images), targets))
    return run


class _Sentences(nn.Module):
    """The mean of the words that count, then a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 16), nn.Linear(16, 2)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        counted = mask.unsqueeze(-1)
        found: Tensor = self.head((self.embed(words) * counted).sum(1) / counted.sum(1))
        return found


def sentences(watch: Watch) -> nbp.Run:
    """Sentences of 3 to 24 words, cut at 16; their order is random, then by length."""
    torch.manual_seed(0)
    words, lengths = torch.randint(50, (960, 16)), torch.randint(3, 25, (960,))
    targets = (words[:, 0] > 24).long()
    model = _Sentences()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run = watch(model, optimizer)
    orders = [torch.randperm(960), torch.randperm(960), lengths.argsort()]
    for chosen in torch.cat(orders).split(32):
        kept = lengths[chosen].clamp(max=16)
        mask = torch.arange(int(kept.max())) < kept.unsqueeze(1)
        run.batch(mask=mask, truncated=lengths[chosen] > 16)
        outputs = model(words[chosen, : mask.size(1)], mask)
        _update(run, optimizer, cross_entropy(outputs, targets[chosen]))
    return run


def spoilt_data(watch: Watch) -> nbp.Run:
    """The last 20 labels are wrong; no shuffling for two epochs, then each image twice."""
    torch.manual_seed(0)
    images, targets = (tensor[:960].clone() for tensor in digits())
    targets[-20:] = (targets[-20:] + 1) % 10
    model = _dense([64, 64, 10], nn.ReLU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = watch(model, optimizer)
    for chosen in _chosen(targets):
        run.batch(inputs=images[chosen], targets=targets[chosen], indices=chosen)
        losses = cross_entropy(model(images[chosen]), targets[chosen], reduction="none")
        run.batch(losses=losses, buckets=targets[chosen])
        _update(run, optimizer, losses.mean())
    return run


def _chosen(targets: Tensor) -> Iterator[Tensor]:
    for _ in range(6):
        yield from torch.randperm(960).split(64)
    for _ in range(2):
        yield from targets.argsort().split(64)
    for _ in range(2):
        yield from torch.randperm(960).split(64)
    for _ in range(30):
        yield torch.randint(960, (32,)).repeat(2)


def _dense(
    widths: list[int], activation: type[nn.Module], gain: float = 1.0, norm: bool = False
) -> nn.Sequential:
    """Layers ``linear1``, ``relu1``, ...; with a BatchNorm behind the first of them if asked."""
    layers: dict[str, nn.Module] = {}
    for n, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        if n > 1:
            layers[f"{activation.__name__.lower()}{n - 1}"] = activation()
        layers[f"linear{n}"] = linear = nn.Linear(inputs, outputs)
        if gain != 1.0:
            nn.init.xavier_normal_(linear.weight, gain)
        if norm and n == 1:
            layers["norm1"] = nn.BatchNorm1d(outputs)
    return nn.Sequential(OrderedDict(layers))


def _batches(n: int, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    data = TensorDataset(*digits())
    done = 0
    while done < n:
        for images, targets in DataLoader(data, size, shuffle=True, drop_last=True):
            yield images, targets
            done += 1
            if done == n:
                return


def _update(run: nbp.Run, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log(loss=loss)
