"""Checkpoints of two processes that train together: one file, which the first one writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from notebook_probe.errors import CheckpointError
from notebook_probe.train import Checkpoints, Loop
from tests.distributed.pair import Pair
from tests.train.conftest import batches, small_model, trainer

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

AT, EPOCHS = 3, 2


def parallel(seed: int) -> nn.Module:
    return DistributedDataParallel(small_model(seed))


def sharded(seed: int) -> nn.Module:
    model = small_model(seed)
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


KINDS = {"DDP": parallel, "FSDP2": sharded}


def trained(rank: int, folder: str, kind: str, resume: bool) -> list[float]:
    """Losses of this rank, whose data and generators are its own."""
    losses: list[float] = []
    loop = Loop(trainer(KINDS[kind](seed=int(resume))))
    torch.manual_seed(10 + rank)
    if resume:
        loop.load_checkpoint(folder)
    else:
        loop.add(Checkpoints(folder, every=AT, keep_last=1, at_close=False))
        loop.on_step(lambda loop, m: loop.stop() if loop.n_updates == 5 else None)
    loop.on_step(lambda loop, metrics: losses.append(float(metrics["loss"])))
    loop.run_epochs(batches(4, seed=rank), EPOCHS)
    dist.barrier()
    return losses


@pytest.mark.parametrize("kind", KINDS)
def test_every_process_goes_on_as_it_was(pair: Pair, tmp_path: Path, kind: str) -> None:
    whole = pair.run(trained, str(tmp_path), kind, False)
    assert [path.name for path in tmp_path.glob("*.pt")] == ["step_00000003.pt"]
    resumed = pair.run(trained, str(tmp_path), kind, True)
    for before, after in zip(whole, resumed, strict=True):
        assert after[: 5 - AT] == before[AT:]
        assert len(after) == 4 * EPOCHS - AT
    assert whole[0] != whole[1]

    alone: Any = Loop(trainer())
    with pytest.raises(CheckpointError, match="processes: 2 there, 1 here"):
        alone.load_checkpoint(tmp_path)
    with pytest.warns(UserWarning, match="processes: 2 there, 1 here"):
        alone.load_checkpoint(tmp_path, strict=False)
    state = torch.load(tmp_path / "step_00000003.pt", weights_only=True)
    assert torch.equal(alone.trainer.model[0].weight, state["trainer"]["model"]["0.weight"])
