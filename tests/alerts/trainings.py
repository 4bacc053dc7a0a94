"""Small trainings that go wrong, each in its own way, and the same ones going right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from tests.digits import digits

__all__ = ["HEALTHY", "ILL", "Training", "attention_net", "batches", "deep", "mlp", "run_it"]

Batch = tuple[Tensor, Tensor]
IMAGES, LABELS = digits()


def batches(size: int = 32, seed: int = 0) -> Iterator[Batch]:
    """Digits, without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        chosen = torch.randint(0, len(IMAGES), (size,), generator=generator)
        yield IMAGES[chosen], LABELS[chosen]


def slow(size: int = 32) -> Iterator[Batch]:
    """A loader that works far longer than a step takes."""
    rng = np.random.default_rng(0)
    for batch in batches(size):
        np.sort(rng.standard_normal(200_000))
        yield batch


def with_a_strange_batch(at: int, scale: float) -> Iterator[Batch]:
    for step, (x, y) in enumerate(batches()):
        yield (scale * x, y.flip(0)) if step == at else (x, y)


def shifted(after: int, scale: float) -> Iterator[Batch]:
    for step, (x, y) in enumerate(batches()):
        yield (scale * x, y) if step >= after else (x, y)


def mlp(act: type[nn.Module] = nn.ReLU, norm: bool = False) -> nn.Module:
    norms = [nn.BatchNorm1d(32)] if norm else []
    return nn.Sequential(
        nn.Linear(64, 32), *norms, act(), nn.Linear(32, 32), act(), nn.Linear(32, 10)
    )


def deep(act: type[nn.Module], n_layers: int, norm: bool = False, he: bool = True) -> nn.Module:
    """Layers of one width, initialised after He, or as torch does."""
    layers: list[nn.Module] = []
    for _ in range(n_layers):
        linear = nn.Linear(64, 64)
        if he:
            nn.init.kaiming_normal_(linear.weight)
        layers += [linear, *([nn.BatchNorm1d(64)] if norm else []), act()]
    return nn.Sequential(*layers, nn.Linear(64, 10))


class Functional(nn.Module):
    """An MLP without modules for its activations; ``bias`` is a mistake in the initialisation."""

    def __init__(self, bias: float) -> None:
        super().__init__()
        self.first, self.second, self.third = (
            nn.Linear(64, 32),
            nn.Linear(32, 32),
            nn.Linear(32, 10),
        )
        nn.init.constant_(self.first.bias, bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.third(self.second(self.first(x).relu()).relu())


class AttentionNet(nn.Module):
    """The rows of an image attend to each other; ``scale`` is a mistake in the initialisation."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 10)
        with torch.no_grad():
            self.attention.in_proj_weight[:32] *= scale

    def forward(self, x: Tensor) -> Tensor:
        rows = self.embed(x.unflatten(-1, (8, 8)))
        mixed, _ = self.attention(rows, rows, rows, need_weights=False)
        return self.head((rows + mixed).mean(1))


class WithBoxes(nn.Module):
    """Classifies, and has a head for boxes, of which no sample is positive."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.classes, self.boxes = (
            nn.Linear(64, 32),
            nn.Linear(32, 10),
            nn.Linear(32, 4),
        )

    def forward(self, x: Tensor) -> Tensor:
        found = self.body(x).relu()
        return self.classes(found) + 0.0 * self.boxes(found).sum()


def attention_net(scale: float = 1.0) -> nn.Module:
    return AttentionNet(scale)


class Half(nn.Module):
    """An MLP that computes in float16."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.body, self.scale = mlp().half(), scale

    def forward(self, x: Tensor) -> Tensor:
        return self.body((self.scale * x).half()).float()


def sgd(lr: float) -> Callable[[nn.Module], Optimizer]:
    return lambda model: SGD(model.parameters(), lr=lr)


def decayed(weight_decay: float) -> Callable[[nn.Module], Optimizer]:
    return lambda model: SGD(model.parameters(), lr=0.1, weight_decay=weight_decay)


def adam(lr: float) -> Callable[[nn.Module], Optimizer]:
    return lambda model: Adam(model.parameters(), lr=lr)


USUAL = sgd(0.1)


@dataclass(frozen=True)
class Training:
    """A model, how it is trained, and what is measured of it."""

    model: Callable[[], nn.Module] = mlp
    optimizer: Callable[[nn.Module], Optimizer] = USUAL
    data: Callable[[], Iterable[Batch]] = batches
    n_steps: int = 60
    clip: float | None = None
    probes: Any = None
    then: Callable[[Optimizer, int], None] = lambda optimizer, step: None
    """What happens to the optimizer at each step."""
    handed: bool = False
    """The loader is handed to the run."""


def run_it(training: Training, store: Any) -> nbp.Run:
    """Train and close; the weights come from one seed."""
    torch.default_generator.manual_seed(1)
    model = training.model()
    optimizer = training.optimizer(model)
    run = nbp.watch(model, optimizer, store=store, probes=training.probes, budget=None)
    data = run.batches(training.data()) if training.handed else training.data()
    for step, (x, y) in enumerate(islice(data, training.n_steps)):
        training.then(optimizer, step)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if training.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), training.clip)
        optimizer.step()
        run.log(loss=loss.detach())
    run.close()
    return run


def hundredfold(optimizer: Optimizer, step: int) -> None:
    """A schedule with a mistake."""
    if step == 30:
        optimizer.param_groups[0]["lr"] *= 100


def saturated(optimizer: Optimizer, step: int) -> None:
    """Move the second layer of sigmoids to where they are flat."""
    if step == 20:
        with torch.no_grad():
            optimizer.param_groups[0]["params"][3] += 15.0


def at_all(*names: str) -> dict[str, Any]:
    return {"*": list(names)}


def of_the_model(*names: str) -> dict[str, Any]:
    return {"": list(names)}


ATTENTION: dict[str, Any] = {
    "attention": [
        "attn_entropy_share",
        "attn_narrowest_head",
        "attn_max_logit",
        "attn_max_logit_head",
    ]
}
RATES = at_all("update_ratio", "grad_cosine", "grad_norm", "weight_norm")
SLOPES: dict[str, Any] = {**at_all("grad_norm"), **of_the_model("grad_depth_slope")}
CLIPPING = {
    **at_all("update_ratio", "weight_norm", "grad_norm"),
    **of_the_model("clip_coefficient"),
}
WAITING = of_the_model("data_wait_share")
RANKS = at_all("effective_rank", "effective_rank_share")
LOST = at_all("grad_rms", "silent_input_fraction")
SILENT_INPUTS = at_all("silent_input_fraction")
SURPRISE = at_all("adam_update_rms")
TID: dict[Any, Any] = {nn.BatchNorm1d: ["bn_mean_tid", "bn_var_tid"]}
DEAD: dict[Any, Any] = {nn.ReLU: [["dead_fraction", "every(20)"]]}
SIGMOIDS = partial(mlp, nn.Sigmoid)
SIGMOID, HE = partial(deep, nn.Sigmoid, 12), partial(deep, nn.ReLU, 12)
BARE = partial(deep, nn.ReLU, 20, he=False)
NORMALISED = partial(deep, nn.ReLU, 20, he=False, norm=True)
WITH_NORM = partial(mlp, norm=True)

ILL: dict[str, tuple[Training, Training]] = {
    "nonfinite_output": (
        Training(optimizer=sgd(1e20), n_steps=5, probes=at_all("nonfinite_fraction")),
        Training(probes=at_all("nonfinite_fraction")),
    ),
    "nonfinite_gradient": (
        Training(optimizer=sgd(1e20), n_steps=5, probes=at_all("grad_norm")),
        Training(probes=at_all("grad_norm")),
    ),
    "nonfinite_loss": (Training(optimizer=sgd(1e20), n_steps=5), Training()),
    "overflow_near": (
        Training(lambda: Half(3e4), sgd(1e-6), n_steps=5, probes=at_all("range_headroom_bits")),
        Training(lambda: Half(1.0), n_steps=5, probes=at_all("range_headroom_bits")),
    ),
    "exploding_gradient": (
        Training(HE, sgd(0.02), probes=RATES, then=hundredfold),
        Training(HE, sgd(0.02), probes=RATES),
    ),
    "vanishing_gradient": (
        Training(SIGMOID, n_steps=12, probes=LOST),
        Training(HE, n_steps=12, probes=LOST),
    ),
    "weights_shrink": (
        Training(optimizer=decayed(0.5), n_steps=60, probes=at_all("weight_norm")),
        Training(optimizer=decayed(1e-3), n_steps=60, probes=at_all("weight_norm")),
    ),
    "faded_gradient": (
        Training(SIGMOIDS, n_steps=340, probes=at_all("grad_rms"), then=saturated),
        Training(partial(mlp, nn.Tanh), n_steps=340, probes=at_all("grad_rms")),
    ),
    "idle_gradient": (
        Training(WithBoxes, n_steps=60, probes=at_all("grad_rms")),
        Training(HE, n_steps=60, probes=at_all("grad_rms")),
    ),
    "vanishing_with_depth": (
        Training(SIGMOID, n_steps=12, probes=SLOPES),
        Training(HE, n_steps=12, probes=SLOPES),
    ),
    "always_clipped": (
        Training(n_steps=50, clip=1e-3, probes=CLIPPING),
        Training(n_steps=50, clip=1.0, probes=CLIPPING),
    ),
    "gradient_too_long": (
        Training(n_steps=20, clip=1e-9, probes=CLIPPING),
        Training(n_steps=20, clip=1e-3, probes=CLIPPING),
    ),
    "dead_units": (
        Training(optimizer=sgd(4.0), n_steps=100, probes=DEAD),
        Training(n_steps=100, probes=DEAD),
    ),
    "silent_inputs": (
        Training(lambda: Functional(-10.0), n_steps=5, probes=LOST),
        Training(lambda: Functional(0.0), n_steps=5, probes=LOST),
    ),
    "blank_batch": (
        Training(data=lambda: shifted(40, 0.0), probes=SILENT_INPUTS),
        Training(probes=SILENT_INPUTS),
    ),
    "rank_collapse": (
        Training(BARE, sgd(1e-4), n_steps=64, probes=RANKS),
        Training(NORMALISED, sgd(1e-4), n_steps=64, probes=RANKS),
    ),
    "batchnorm_mismatch": (
        Training(WITH_NORM, data=lambda: batches(2), n_steps=80, probes=TID),
        Training(WITH_NORM, data=lambda: batches(64), n_steps=80, probes=TID),
    ),
    "attention_collapse": (
        Training(lambda: attention_net(60.0), sgd(0.01), n_steps=60, probes=ATTENTION),
        Training(attention_net, n_steps=60, probes=ATTENTION),
    ),
    "attention_logit_large": (
        Training(lambda: attention_net(60.0), sgd(0.01), n_steps=3, probes=ATTENTION),
        Training(attention_net, n_steps=160, probes=ATTENTION),
    ),
    "attention_logit_growing": (
        Training(attention_net, adam(0.03), n_steps=400, probes=ATTENTION),
        Training(attention_net, n_steps=160, probes=ATTENTION),
    ),
    "early_divergence": (
        Training(optimizer=adam(0.3), n_steps=10, probes=at_all("update_ratio")),
        Training(optimizer=adam(0.01), n_steps=50, probes=at_all("update_ratio")),
    ),
    "lr_high": (
        Training(optimizer=sgd(2.0), probes=RATES),
        Training(probes=RATES),
    ),
    "hardly_trains": (
        Training(optimizer=adam(1e-6), n_steps=60, probes=RATES),
        Training(optimizer=adam(1e-3), n_steps=60, probes=RATES),
    ),
    "large_outputs": (
        Training(
            data=lambda: shifted(0, 255.0),
            n_steps=3,
            probes=at_all("output_std", "range_headroom_bits"),
        ),
        Training(n_steps=3, probes=at_all("output_std", "range_headroom_bits")),
    ),
    "lr_low": (
        Training(optimizer=sgd(1e-8), n_steps=15, probes=RATES),
        Training(n_steps=15, probes=RATES),
    ),
    "diverging_loss": (Training(optimizer=sgd(100.0), n_steps=5), Training()),
    "loss_spike": (
        Training(n_steps=150, data=lambda: with_a_strange_batch(140, 8.0)),
        Training(n_steps=150),
    ),
    "adam_spike_ahead": (
        Training(
            optimizer=adam(5e-3), n_steps=110, data=lambda: shifted(100, 30.0), probes=SURPRISE
        ),
        Training(optimizer=adam(5e-3), n_steps=110, probes=SURPRISE),
    ),
    "loader_bound": (
        Training(data=slow, probes=WAITING, handed=True),
        Training(data=lambda: list(islice(batches(), 60)), probes=WAITING, handed=True),
    ),
}

ALERTS = ["default", "alerts"]
HEALTHY = {
    "sgd": Training(WITH_NORM, n_steps=120, probes=ALERTS, handed=True),
    "adam": Training(mlp, adam(2e-3), n_steps=120, probes=ALERTS),
    "attention": Training(attention_net, adam(3e-3), n_steps=120, clip=5.0, probes=ALERTS),
}
"""Nothing is wrong with these."""
