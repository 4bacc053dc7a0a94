"""Norms of whole weights, added up from the shards of two ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD

import notebook_probe as nbp
from tests.distributed.pair import Pair
from tests.models import floats, loss_of, made

pytestmark = [pytest.mark.xdist_group("pair"), pytest.mark.slow]

batch = floats(5, 4)
STEPS = range(4)
NORMS = ("weight_norm", "grad_norm")
PROBES = {**{path: [*NORMS] for path in ("0", "2", "0.weight")}, "": ["grad_norm"]}


def odd() -> nn.Sequential:
    """Rows that do not divide by two."""
    return nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 1))


def train(rank: int, store: Path, kind: str) -> None:
    plain: Any = made(odd)
    mesh = init_device_mesh("cpu", (2,))
    if kind == "whole":
        model: nn.Module = DistributedDataParallel(plain)
    else:
        fully_shard(plain[0], mesh=mesh)
        if kind == "sharded":
            fully_shard(plain, mesh=mesh)
        model = plain
    optimizer = SGD(model.parameters(), lr=0.1)
    dist.barrier()
    with nbp.watch(model, store=store, probes=PROBES, budget=None):
        for step in STEPS:
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()  # the same on both ranks, so whole layers agree
            optimizer.step()
    dist.barrier()


def norm(tensors: Iterable[Tensor | None]) -> float:
    return math.sqrt(
        sum(float(one.detach().double().square().sum()) for one in tensors if one is not None)
    )


def expected(path: str) -> dict[str, list[float]]:
    """Return the norms at a path, in one process alone."""
    model = made(odd)
    optimizer = SGD(model.parameters(), lr=0.1)
    found: dict[str, list[float]] = {name: [] for name in NORMS}
    for step in STEPS:
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        below = [one for name, one in model.named_parameters() if name.startswith(path)]
        found["weight_norm"].append(norm(below[:1]))  # of the matrix alone
        found["grad_norm"].append(norm(one.grad for one in below))
        optimizer.step()
    return found


@pytest.mark.parametrize("kind", ["sharded", "whole", "mixed"])
def test_norms_of_whole_weights_are_those_of_one_process(
    kind: str, pair: Pair, tmp_path: Path
) -> None:
    pair.run(train, tmp_path / "run.zarr", kind)
    job = nbp.open_run(tmp_path / "run.zarr")
    assert isinstance(job, nbp.OpenedJob)
    whole = job.whole_norms()
    assert set(whole.data_vars) == set(NORMS)
    for path in ("0", "2", "0.weight", ""):
        norms = whole.sel(module=path or "(root)")
        if kind == "mixed" and not path:
            assert np.isnan(norms.grad_norm).all()
            continue
        for name in NORMS if path else NORMS[1:]:
            assert np.allclose(norms[name], expected(path)[name], rtol=1e-5), (path, name)
    if kind == "sharded":
        ranks = job.data.weight_norm.sel(module="0")
        assert float(ranks.isel(rank=0, step=0)) < float(whole.weight_norm.sel(module="0")[0])
