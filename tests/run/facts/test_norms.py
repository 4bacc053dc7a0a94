"""Running statistics that hardly follow, or forget all but the last batch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.run.run import Run


def trained(norm: nn.Module, folder: Path, n_forwards: int = 1) -> Run:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), norm, nn.Linear(4, 1))
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, folder / "a.zarr", [], budget=None) as run:
        for _ in range(24):
            for _ in range(n_forwards):
                model(torch.rand(8, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return run


@pytest.mark.parametrize("n_forwards", [1, 4])
def test_statistics_that_hardly_follow_are_named_with_and_without_accumulation(
    n_forwards: int, tmp_path: Path
) -> None:
    run = trained(nn.BatchNorm1d(4, momentum=0.001), tmp_path, n_forwards)
    (alert,) = run.alerts
    assert (alert.rule, alert.modules, alert.step) == ("batchnorm_momentum", ("1",), 19)
    share = (1 - 0.001) ** (19 * n_forwards)
    assert f"{share:.0%} of the running statistics are their initial 0 and 1" in alert.text
    assert "1000 batches" in alert.text
    assert [*run.remarks] == []


@pytest.mark.parametrize("momentum", [0.01, 0.1, 0.3, 1.0, None])
def test_statistics_that_follow_are_not_named(momentum: float | None, tmp_path: Path) -> None:
    run = trained(nn.BatchNorm1d(4, momentum=momentum), tmp_path)
    assert ([*run.alerts], [*run.remarks]) == ([], [])


def test_statistics_of_an_earlier_training_are_not_named(tmp_path: Path) -> None:
    norm = nn.BatchNorm1d(4, momentum=0.001)
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.fill_(5000)
    assert [*trained(norm, tmp_path).alerts] == []


def test_statistics_of_the_last_batch_are_a_remark(tmp_path: Path) -> None:
    run = trained(nn.BatchNorm1d(4, momentum=0.9), tmp_path)
    assert [*run.alerts] == []
    assert [one.rule for one in run.remarks] == ["batchnorm_momentum"]
