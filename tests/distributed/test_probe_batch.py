"""A probe batch of one rank alone: nobody else is asked, and nobody waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError
from tests.distributed.pair import Pair
from tests.models import floats, loss_of, made, mean_square, mlp
from tests.probes.parity import everything

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

batch = floats(5, 4)


def replicated(rank: int, folder: Path) -> tuple[dict[str, bytes], list[float]]:
    """Only the first rank has a probe batch."""
    model = made(mlp)
    ddp = DistributedDataParallel(model)
    run = nbp.watch(ddp, store=folder / f"{rank}.zarr", probes={"": ["sharpness"]})
    if rank == 0:
        run.probe_batch(batch(9), None, mean_square)
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(ddp(batch(10 * rank + step))).backward()
        optimizer.step()
    run.close()
    recorded = run.series("", "sharpness").values.tolist() if rank == 0 else []
    return everything(model), recorded


def test_a_replica_is_measured_by_one_rank_alone(pair: Pair, tmp_path: Path) -> None:
    (first, sharpness), (second, _) = pair.run(replicated, tmp_path)
    weights = [name for name in first if not name.startswith(("random", "grad"))]
    assert all(first[name] == second[name] for name in weights)
    assert len(sharpness) == 3
    assert np.isfinite(sharpness).all()


def sharded(rank: int, folder: Path) -> str:
    model: nn.Module = made(mlp)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    run = nbp.watch(model, store=folder / f"{rank}.zarr", probes=None)
    try:
        run.probe_batch(batch(9), None, mean_square)
    except NotApplicableError as error:
        return str(error)
    finally:
        run.close()
    return ""


def test_a_model_that_is_split_over_processes_is_refused(pair: Pair, tmp_path: Path) -> None:
    assert all("split over processes" in said for said in pair.run(sharded, tmp_path))
