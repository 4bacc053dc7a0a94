"""Errors that change a training without an exception: those that TrainCheck was evaluated on.

One training for each kind that a single process can show, after the descriptions of the issues in
github.com/OrderLab/TrainCheck-Evaluation-Workloads (Jiang et al., OSDI 2025). Errors between ranks
(DeepSpeed 1801 and 5794, PyTorch 104336, two wrappers of one model) are shown by two processes in
`tests/distributed/test_rank_facts.py`. Two issues end before a training begins or after it: an
initialization that runs twice (transformers 17877), and the length of generated text (transformers
23723).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F
from torch.optim import Optimizer

from benchmarks.rules.data import batches, digit_images, digits, wine
from benchmarks.rules.losses import cross_entropy
from benchmarks.rules.mistakes.errors import misread
from benchmarks.rules.mistakes.expected import UNHEALTHY
from benchmarks.rules.models.plain import mlp
from benchmarks.rules.recipe import Recipes, cause
from benchmarks.rules.training import Training, fit, keep_gradients

__all__ = ["HERE"]

HERE = Recipes("published")


@HERE.each(
    cause(
        "a_transfer_loses_data",
        *("silent_inputs", "blank_batch", "collapsed_batch"),
        step=60,
        follows=UNHEALTHY,
    ),
    cause("gradients_are_never_cleared", "uncleared_gradients", follows=UNHEALTHY),
    cause("steps_are_skipped", "step_without_effect", "no_updates", step=60, follows=UNHEALTHY),
    cause("workers_draw_alike", "repeated_batch", "collapsed_batch", follows=UNHEALTHY),
)
def digits_from_a_loader(error: str) -> Training:
    """Digits; PyTorch 84803 and 96600, StackOverflow 60335387 and 67180955, PyTorch 115607."""
    data = digits()
    model = mlp(64, 48, 10)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    if error == "steps_are_skipped":
        optimizer = _Forgetful(model.parameters(), lr=2e-3, until=60)
    found = batches(data, 64, seed=601)
    if error == "a_transfer_loses_data":
        found = _lossy(found)
    if error == "workers_draw_alike":
        one = next(found)
        found = iter(lambda: one, None)
    prepare = keep_gradients if error == "gradients_are_never_cleared" else Optimizer.zero_grad
    wrong = misread(model, data)
    return fit(model, optimizer, cross_entropy, found, prepare=prepare, error=wrong, harm=wrong)


class _Forgetful(optim.Adam):
    """Applies nothing after some updates, as a compiled step that is replayed wrongly."""

    def __init__(self, parameters: Any, lr: float, until: int) -> None:
        super().__init__(parameters, lr=lr)
        self.n_left = until

    def step(self, closure: Any = None) -> Any:
        self.n_left -= 1
        return super().step(closure) if self.n_left >= 0 else None


def _lossy(found: Iterator[tuple[Tensor, ...]]) -> Iterator[tuple[Tensor, ...]]:
    """Zero the inputs of every tenth batch from the 60th on."""
    for i, (x, y) in enumerate(found):
        yield (torch.zeros_like(x) if i >= 60 and i % 10 == 0 else x), y


class _Heads(nn.Module):
    """A head over features, one layer of which may compute in float32 whatever autocast says."""

    def __init__(self, *, ignores: bool = False) -> None:
        super().__init__()
        self.features, self.head = mlp(13, 32, 32), nn.Linear(32, 3)
        self.ignores = ignores

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=not self.ignores):
            found = self.features(x.float())
        return self.head(F.relu(found))


@HERE.each(cause("a_transform_loses_autocast", "autocast_ignored", follows=UNHEALTHY))
def wines_in_bfloat16(error: str) -> Training:
    """Wines under autocast; Lightning Thunder 725."""
    model = _Heads(ignores=bool(error))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    data = batches(wine(), 32, seed=602)
    kinds: list[torch.dtype] = []
    model.features.register_forward_hook(lambda module, args, out: kinds.append(out.dtype))
    return fit(
        *(model, optimizer, cross_entropy, data),
        precision=torch.bfloat16,
        harm=lambda: sum(kind is torch.float32 for kind in kinds),
    )


class _Backbone(nn.Module):
    """Convolutions of which `train` freezes the first stage, as MMPretrain's backbones do."""

    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self.stem, self.body = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3)
        self.head = nn.Linear(8 * 16, 10)
        self.frozen = frozen

    def train(self, mode: bool = True) -> _Backbone:
        super().train(mode)
        if self.frozen:
            self.stem.requires_grad_(False)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.body(F.relu(self.stem(x)))).flatten(1))


@HERE.each(
    cause("frozen_after_an_evaluation", "frozen_late", step=100, follows=UNHEALTHY),
    cause("only_batchnorm_trains", "only_norms_train", follows=UNHEALTHY),
    cause("dropout_in_evaluation", "dropout_in_evaluation", step=100, follows=UNHEALTHY),
    cause("normalized_after_an_evaluation", "unsettled_spectral_norm", follows=UNHEALTHY),
)
def digits_by_a_backbone(error: str) -> Training:
    """Digits; MMPretrain 702, a forum's 84911, transformers 33844, PyTorch 51800."""
    data = digit_images()
    model = _model(error)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    spread: list[float] = []
    norms: list[float] = []

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            spread.append((model(data[0][:64]) - model(data[0][:64])).abs().max().item())
        norms.append(_norm(model))
        model.train()

    first = 0 if error == "normalized_after_an_evaluation" else 100
    wrong = misread(model, data)
    harms: dict[str, Callable[[], float]] = {
        "frozen_after_an_evaluation": lambda: float(not _first(model).requires_grad),
        "dropout_in_evaluation": lambda: max(spread),
        "normalized_after_an_evaluation": lambda: norms[0],  # 1 where it was estimated
    }
    harm = harms.get(error, wrong) if error else wrong
    return fit(
        *(model, optimizer, cross_entropy, batches(data, 64, seed=603)),
        before={first: evaluate},
        # To ask for its errors would call `train`, too.
        error=None if error == "frozen_after_an_evaluation" else wrong,
        harm=harm,
    )


def _first(model: nn.Module) -> Tensor:
    return next(model.parameters())


def _norm(model: nn.Module) -> float:
    """Spectral norm of the first convolution's weight, as the last call has computed it."""
    weight = getattr(next(iter(model.children())), "weight", None)
    assert isinstance(weight, Tensor)
    return torch.linalg.matrix_norm(weight.detach().flatten(1), 2).item()


class _Dropping(nn.Module):
    """Drops attention's weights in evaluation, too."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.2)


def _model(error: str) -> nn.Module:
    if error == "frozen_after_an_evaluation":
        return _Backbone(frozen=True)
    drop = _Dropping() if error == "dropout_in_evaluation" else nn.Dropout(0.2)
    first: nn.Module = nn.Conv2d(1, 8, 3)
    if error == "normalized_after_an_evaluation":
        first = nn.utils.spectral_norm(first)
    model = nn.Sequential(
        *(first, nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        *(drop, nn.Flatten(), nn.Linear(8 * 16, 10)),
    )
    if error == "only_batchnorm_trains":
        for module in model:
            module.requires_grad_(isinstance(module, nn.BatchNorm2d))
    return model
