"""Each rank writes a record of its own in one folder, with no word to the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch.distributed as dist
import xarray as xr
from torch.nn.parallel import DistributedDataParallel

import notebook_probe as nbp
from notebook_probe.record.store.location import RemoteStore
from notebook_probe.run.begin.ranks import own_rank
from tests.distributed.pair import Pair
from tests.models import floats, made, mlp, sgd, train

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

STEPS = range(4)
PROBES = {"0": ["input_norm", "weight_norm"]}


def train_watched(rank: int, store: Any) -> tuple[str, list[float]]:
    model = DistributedDataParallel(made(mlp))
    optimizer = sgd(model)
    dist.barrier()  # both open the same folder at the same moment
    with nbp.watch(model, optimizer, store=store, probes=PROBES) as run:
        train(model, optimizer, lambda step: floats(5, 4)(100 * rank + step), STEPS)
        return run.location, run.series("0", "input_norm").values.tolist()


@pytest.mark.parametrize("is_remote", [False, True])
def test_each_rank_has_a_record_below_the_store(
    pair: Pair, tmp_path: Path, is_remote: bool
) -> None:
    folder = tmp_path / "run.zarr"
    store = RemoteStore(folder.as_uri(), spool=tmp_path) if is_remote else folder
    told = pair.run(train_watched, store)
    assert sorted(path.name for path in folder.iterdir()) == ["rank_00000", "rank_00001"]
    weights = []
    for rank, (location, norms) in enumerate(told):
        assert location.endswith(f"run.zarr/rank_{rank:05d}")
        data = xr.open_zarr(folder / f"rank_{rank:05d}", group="scalars/every_1", chunks=None)
        expected = [np.linalg.norm(floats(5, 4)(100 * rank + step).numpy()) for step in STEPS]
        assert np.allclose(data.input_norm.sel(module="0"), expected, rtol=1e-6)
        assert np.array_equal(data.input_norm.sel(module="0"), np.array(norms, np.float32))
        weights.append(data.weight_norm.sel(module="0").values)
    assert np.array_equal(*weights)
    run = nbp.open_run(store)
    assert run.location == str(store)
    assert dict(run.data.sizes) == {"rank": 2, "module": 1, "step": 4}
    assert run.series("0", "input_norm").transpose("rank", "step").values.tolist() == [
        norms for _, norms in told
    ]


def watch_on_one(rank: int, store: Path) -> str:
    if rank == 1:
        dist.barrier()
        return ""
    location, _ = train_alone(store)
    dist.barrier()
    return location


def train_alone(store: Path) -> tuple[str, list[float]]:
    model = made(mlp)
    with nbp.watch(model, store=store, probes=PROBES, rank=None) as run:
        train(model, sgd(model), floats(5, 4), STEPS)
        return run.location, run.series("0", "input_norm").values.tolist()


def test_one_rank_alone_may_have_the_store_for_itself(pair: Pair, tmp_path: Path) -> None:
    location, _ = pair.run(watch_on_one, tmp_path / "run.zarr")
    assert location == str(tmp_path / "run.zarr")
    assert nbp.open_run(location).finished


def ranks_told(rank: int) -> int | None:
    return own_rank()


def test_the_rank_is_the_one_of_the_process_group(pair: Pair) -> None:
    assert pair.run(ranks_told) == [0, 1]
    assert own_rank() is None


@pytest.mark.parametrize(
    ("rank", "size", "own"), [("3", "8", 3), ("0", "1", None), ("", "8", None), ("x", "8", None)]
)
def test_before_the_group_is_there_the_launcher_tells_the_rank(
    monkeypatch: pytest.MonkeyPatch, rank: str, size: str, own: int | None
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    assert own_rank() == own


def test_fresh_folders_of_ranks_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    model = made(mlp)
    with nbp.watch(model, probes=PROBES, rank=3) as run:
        train(model, sgd(model), floats(5, 4), STEPS)
        assert run.location.endswith("-rank_00003.zarr")
