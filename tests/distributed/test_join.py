"""Ranks that do not take the same number of steps, nor are watched alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD

import notebook_probe as nbp
from tests.distributed.pair import Pair
from tests.models import floats, loss_of, made, mlp
from tests.probes.parity import differing, everything

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

batch = floats(5, 4)
N_STEPS = (5, 3)


def given(rank: int, step: int) -> Tensor:
    return batch(100 * rank + step)


def size(value: Tensor) -> float:
    return float(np.linalg.norm(value.detach().double().numpy()))


def train(rank: int, parallel: DistributedDataParallel) -> tuple[list[float], list[float]]:
    """Sizes of the output and of the gradient of "0.weight" in this rank's own steps."""
    outputs, gradients = [], []
    optimizer = SGD(parallel.parameters(), lr=0.1)
    weight = parallel.module.get_parameter("0.weight")
    with Join([parallel]):
        for step in range(N_STEPS[rank]):
            optimizer.zero_grad()
            output = parallel(given(rank, step))
            outputs.append(size(output))
            loss_of(output).backward()
            assert weight.grad is not None
            gradients.append(size(weight.grad))
            optimizer.step()
    return outputs, gradients


def train_unevenly(rank: int, folder: Path, watching: tuple[int, ...]) -> dict[str, Any]:
    alone, model = made(mlp), made(mlp)
    torch.manual_seed(7)
    expected = train(rank, DistributedDataParallel(alone))
    run = None
    if rank in watching:
        probes = {"2": ["output_norm"], "0.weight": ["grad_norm", "update_ratio"]}
        run = nbp.watch(model, store=folder / f"{rank}.zarr", probes=probes)
    torch.manual_seed(7)
    train(rank, DistributedDataParallel(model))
    told: dict[str, Any] = {"different": differing(everything(alone), everything(model))}
    if run is not None:
        told["steps"] = run.data.step.values.tolist()
        told["found"] = (
            run.series("2", "output_norm").values,
            run.series("0.weight", "grad_norm").values,
        )
        told["expected"] = expected
        told["updates"] = run.series("0.weight", "update_ratio").step.values.tolist()
        run.close()
    return told


@pytest.mark.parametrize("watching", [(0,), (1,), (0, 1)])
def test_ranks_with_steps_of_their_own_finish_and_record_their_own(
    watching: tuple[int, ...], pair: Pair, tmp_path: Path
) -> None:
    both = pair.run(train_unevenly, tmp_path, watching)
    for rank, told in enumerate(both):
        assert told["different"] == []
        assert ("steps" in told) is (rank in watching)
        if rank in watching:
            assert told["steps"] == told["updates"] == list(range(N_STEPS[rank]))
            for found, expected in zip(told["found"], told["expected"], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5)


def watch_in_turns(rank: int, folder: Path) -> list[int]:
    """A rank is watched while the other is not, from one epoch to the next."""
    model = made(mlp)
    parallel = DistributedDataParallel(model)
    optimizer = SGD(parallel.parameters(), lr=0.1)
    steps: list[int] = []
    for epoch in range(4):
        run = None
        if epoch % 2 == rank:
            run = nbp.watch(
                model, store=folder / f"{rank}-{epoch}.zarr", probes={"*": ["grad_norm"]}
            )
        for step in range(2):
            optimizer.zero_grad()
            loss_of(parallel(given(rank, step))).backward()
            optimizer.step()
        if run is not None:
            run.close()
            steps.append(run.data.sizes["step"])
    return steps


def test_runs_may_begin_and_end_on_one_rank_while_the_other_trains(
    pair: Pair, tmp_path: Path
) -> None:
    assert pair.run(watch_in_turns, tmp_path) == [[2, 2], [2, 2]]
