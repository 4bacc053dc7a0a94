"""BatchNorm's running statistics, and quantities that look at several steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made
from tests.probes.oracles import Noted, column, float64, norm_of, notes_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import Numbers, norm

STEPS = range(4)
RANKS: dict[str, tuple[Callable[..., nn.Module], tuple[int, ...]]] = {
    "1d": (nn.BatchNorm1d, (6, 3)),
    "1d with length": (nn.BatchNorm1d, (4, 3, 5)),
    "2d": (nn.BatchNorm2d, (4, 3, 2, 5)),
    "3d": (nn.BatchNorm3d, (3, 3, 2, 2, 2)),
}


class Normed(Noted):
    """The input of the norm layer is noted as it comes."""

    def __init__(self, build: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.norm = build(3, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.note("input", x * self.scale + 1))


def loop_over(shape: tuple[int, ...]) -> Callable[[nn.Module, Optimizer], None]:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(*shape)(step)).square().mean().backward()
            optimizer.step()

    return loop


def running_mean_size(output: Tensor, module: nn.Module) -> Tensor:
    """As the forward leaves it."""
    return module.running_mean.norm()  # type: ignore[operator]


def running_mean_size_before(input: Tensor, module: nn.Module) -> Tensor:
    """As the forward finds it."""
    return module.running_mean.norm()  # type: ignore[operator]


def running_var_size(output: Tensor, module: nn.Module) -> Tensor:
    return module.running_var.norm()  # type: ignore[operator]


def channel_rows(x: Tensor) -> Tensor:
    """Rows of channels: the channel axis is 1, whatever the rank."""
    return x.movedim(1, -1).flatten(0, -2)


def tid_of_this_batch(input: Tensor, module: nn.Module) -> Tensor:
    """How far the batch's channel means are from the running ones, before they move."""
    mean = channel_rows(input).mean(0)
    return (mean - module.running_mean).norm()  # type: ignore[operator]


def statistics(inputs: list[Numbers], shape: tuple[int, ...], momentum: float | None) -> Any:
    """Running mean and variance after each step, as the definition has them, in float64."""
    mean, var, told = np.zeros(3), np.ones(3), []
    for i, flat in enumerate(inputs):
        rows = np.moveaxis(flat.reshape(shape), 1, -1).reshape(-1, 3)
        weight = 1 / (i + 1) if momentum is None else momentum
        mean = (1 - weight) * mean + weight * rows.mean(0)
        var = (1 - weight) * var + weight * rows.var(0, ddof=1)  # unbiased, unlike what is applied
        told.append((mean, var, rows))
    return told


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
@pytest.mark.parametrize("rank", RANKS)
def test_running_statistics_are_old_before_the_forward_and_new_after_it(
    rank: str, momentum: float | None, watch: Watch
) -> None:
    build, shape = RANKS[rank]
    twin, model = (made(partial(Normed, build, momentum=momentum)) for _ in range(2))
    notes = notes_of(twin)
    quantities = [running_mean_size, running_mean_size_before, running_var_size, tid_of_this_batch]
    run = watch(model, probes={"norm": quantities})
    train_alike(loop_over(shape), twin, model)
    told = statistics(notes.values("input"), shape, momentum)
    means = [norm(mean) for mean, _, _ in told]
    same_column(run, "norm", "running_mean_size", means)
    same_column(run, "norm", "running_mean_size_before", [0.0, *means[:-1]])
    same_column(run, "norm", "running_var_size", [norm(var) for _, var, _ in told])
    old = [np.zeros(3), *(mean for mean, _, _ in told)]
    tids = [norm(rows.mean(0) - mean) for (_, _, rows), mean in zip(told, old, strict=False)]
    same_column(run, "norm", "tid_of_this_batch", tids, rtol=1e-4)


def test_a_batchnorm_without_running_statistics_is_a_gap_and_no_crash(watch: Watch) -> None:
    """The quantity is told None, as torch has it."""

    def has_statistics(output: Tensor, module: nn.Module) -> float:
        return float(module.running_mean is not None)

    build, shape = RANKS["2d"]
    twin, model = (made(partial(Normed, build, track_running_stats=False)) for _ in range(2))
    notes = notes_of(twin)
    run = watch(model, probes={"norm": [has_statistics, "output_norm", "output_mean", "input_std"]})
    train_alike(loop_over(shape), twin, model)
    assert column(run, "norm", "has_statistics") == [0, 0, 0, 0]
    inputs = notes.values("input")
    same_column(run, "norm", "input_std", [float(x.std(ddof=1)) for x in inputs])
    normed = []
    for x in inputs:
        rows = np.moveaxis(x.reshape(shape), 1, -1).reshape(-1, 3)
        normed.append((rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5))  # biased
    for step, y in enumerate(normed[:1]):  # the affine part is 1 and 0 in the first step only
        assert column(run, "norm", "output_norm")[step] == pytest.approx(norm(y), rel=1e-4)
    assert not run.status().errors


def test_a_frozen_batchnorm_leaves_its_statistics_alone_and_is_measured(watch: Watch) -> None:
    build, shape = RANKS["2d"]

    def frozen(model: Any, optimizer: Optimizer) -> None:
        model.norm.eval()
        with torch.no_grad():
            model.norm.running_mean.fill_(0.5)
        loop_over(shape)(model, optimizer)

    twin, model = (made(partial(Normed, build)) for _ in range(2))
    notes = notes_of(twin)
    run = watch(model, probes={"norm": [running_mean_size, "input_norm", "output_grad_norm"]})
    train_alike(frozen, twin, model)
    same_column(run, "norm", "running_mean_size", [0.5 * math.sqrt(3)] * 4)
    same_column(run, "norm", "input_norm", [norm(x) for x in notes.values("input")])
    assert all(value > 0 for value in column(run, "norm", "output_grad_norm"))


@pytest.mark.parametrize("watched", [False, True])
def test_a_batch_of_one_raises_in_torch_itself_and_the_next_step_is_normal(
    watched: bool, watch: Watch
) -> None:
    model = made(partial(Normed, nn.BatchNorm1d))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = watch(model, probes={"norm": ["input_norm", "output_norm"]}) if watched else None
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        model(torch.ones(1, 3))
    notes = notes_of(model)
    model(floats(6, 3)(0)).square().mean().backward()
    optimizer.step()
    if run is not None:
        assert run.data.step.values.tolist() == [0]
        given = np.concatenate(notes.values("input"))
        same_column(run, "norm", "input_norm", [norm(given)])  # not of the call that raised
        assert np.isfinite(column(run, "norm", "output_norm")).all()
        assert not run.status().errors


# ---------------------------------------------------------------- several steps


def own_history() -> tuple[Callable[[Tensor], float], list[Tensor]]:
    """A quantity that keeps what it was given, as quantities over several steps do."""
    kept: list[Tensor] = []

    def flips(weight: Tensor) -> float:
        """Share of weights that have changed their sign since the last time."""
        share = math.nan
        if kept:
            share = float(((weight * kept[-1]) < 0).double().mean())
        kept.append(weight.clone())
        return share

    return flips, kept


def test_a_weight_can_be_kept_and_compared_with_the_next(watch: Watch) -> None:
    """Kept by reference it would always equal itself."""
    flips, kept = own_history()

    def hard(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(floats(8, 4)(step)).square().mean().backward()
            optimizer.step()

    def build() -> nn.Sequential:
        return nn.Sequential(nn.Linear(4, 6))

    twin, model = made(build), made(build)
    weights: list[Numbers] = []
    keep = torch.optim.SGD

    def optimizer_of(each: nn.Module) -> Optimizer:
        optimizer = keep(each.parameters(), lr=8.0)
        if each is twin:
            weight = twin.get_parameter("0.weight")
            optimizer.register_step_pre_hook(lambda *_: weights.append(float64(weight)))
        return optimizer

    run = watch(model, probes={"0": [flips]})
    train_alike(hard, twin, model, optimizer_of)
    shares = [float((old * new < 0).mean()) for old, new in pairwise(weights)]
    assert max(shares) > 0
    same_column(run, "0", "flips", [math.nan, *shares])
    assert [norm_of(value) for value in kept] == pytest.approx([norm(w) for w in weights])
