"""What should be the same on two ranks, and is not: each mistake with its healthy twin."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.optim.lr_scheduler import ReduceLROnPlateau

import notebook_probe as nbp
from notebook_probe.record.store.location import RemoteStore
from notebook_probe.run.run import Run
from tests.distributed.pair import Pair
from tests.models import floats

pytestmark = [pytest.mark.xdist_group("pair"), pytest.mark.slow]

N_STEPS = 8
batch = floats(16, 4)
Said = list[tuple[str, int, tuple[str, ...], str]]


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def said_by(run: Run) -> Said:
    return [(one.rule, one.step, one.modules, one.text) for one in (*run.alerts, *run.remarks)]


def train(rank: int, store: Path | RemoteStore, mistake: str) -> Said:
    plain = network(rank if mistake == "seed" else 0)
    is_alone = mistake in ("seed", "alone")
    model: nn.Module = plain if is_alone else DistributedDataParallel(plain)
    if mistake == "sharded":
        model = network()
        fully_shard(model)
    if mistake == "split":
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2), nn.LayerNorm(2))
        mesh = init_device_mesh("cpu", (2,))
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    dist.barrier()
    with nbp.watch(model, optimizer, store, []) as run:
        dist.barrier()
        for step in range(N_STEPS):
            x = batch(step if mistake == "split" else 100 * rank + step)
            is_bypassed = mistake == "never wrapped" or (mistake == "bypassed" and step > 2)
            called = plain if is_bypassed else model
            (called(x) - 1).square().mean().backward()
            if mistake == "alone":
                for weight in model.parameters():
                    assert weight.grad is not None
                    dist.all_reduce(weight.grad)
            if mistake == "clipped" and rank == 1 and step >= 2:
                nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()
            optimizer.zero_grad()
            if mistake == "rate":
                scheduler.step(-float(step) if rank == 0 else float(step))
        run.flush()
        dist.barrier()  # now both have published what they know
    dist.barrier()
    return said_by(run)


def said(pair: Pair, folder: Path, mistake: str) -> Said:
    first, second = pair.run(train, folder / "run.zarr", mistake)
    assert second == []  # rank 0 reports for all
    told: Said = first
    assert [one[:3] for one in said_by_opened(folder)] == [one[:3] for one in told]
    return told


def said_by_opened(folder: Path) -> Said:
    return said_by(nbp.open_run(folder / "run.zarr"))  # type: ignore[arg-type]


@pytest.mark.parametrize("mistake", ["none", "alone", "sharded", "split"])
def test_ranks_that_train_as_one_are_not_named(mistake: str, pair: Pair, tmp_path: Path) -> None:
    assert said(pair, tmp_path, mistake) == []


def test_clipping_on_one_rank_is_named_at_the_step_after_it(pair: Pair, tmp_path: Path) -> None:
    ((rule, step, modules, text),) = said(pair, tmp_path, "clipped")
    assert (rule, step, modules) == ("ranks_differ", 3, ("0", "1", "3"))
    assert "ranks 0, 1 should be equal" in text
    assert "changes its gradients alone after they are averaged, as by clipping" in text
    assert "wrapper" not in text


@pytest.mark.parametrize("mistake", ["none", "clipped"])
def test_ranks_that_are_shipped_to_a_store_are_compared_there(
    mistake: str, pair: Pair, tmp_path: Path
) -> None:
    at = RemoteStore((tmp_path / "run.zarr").as_uri(), spool=tmp_path / "spool", every_s=0.2)
    first, second = pair.run(train, at, mistake)
    assert second == []
    assert [one[:3] for one in first] == [
        ("ranks_differ", 3, ("0", "1", "3")) for _ in range(mistake == "clipped")
    ]
    assert [one[:3] for one in said_by_opened(tmp_path)] == [one[:3] for one in first]


def test_a_wrapper_that_is_bypassed_is_named_at_the_step_after_it(
    pair: Pair, tmp_path: Path
) -> None:
    ((rule, step, modules, text),) = said(pair, tmp_path, "bypassed")
    assert (rule, step, modules) == ("ranks_differ", 4, ("0", "1", "3"))
    assert "without its DistributedDataParallel wrapper" in text
    assert "clipping" not in text


def test_a_wrapper_that_is_never_called_is_named_with_the_cause_that_looks_like_it(
    pair: Pair, tmp_path: Path
) -> None:
    ((rule, step, modules, text),) = said(pair, tmp_path, "never wrapped")
    assert (rule, step, modules) == ("ranks_differ", 1, ("0", "1", "3"))
    assert "without its DistributedDataParallel wrapper" in text
    assert "If gradients differ before clipping, it is the first" in text


def test_other_weights_from_the_start_are_named(pair: Pair, tmp_path: Path) -> None:
    ((rule, step, modules, text),) = said(pair, tmp_path, "seed")
    assert (rule, step, modules) == ("ranks_differ", 0, ("0", "3"))
    assert "they begin so; call torch.manual_seed(0)" in text


def test_other_learning_rates_are_named_before_the_weights(pair: Pair, tmp_path: Path) -> None:
    rates, weights = said(pair, tmp_path, "rate")
    assert rates[:3] == ("ranks_differ", 2, ("(root)",))
    assert "0.1 on rank 0 and 0.05 on rank 1" in rates[3]
    assert weights[1] == 3
    assert "the learning rates do, too" in weights[3]


def stop_early(rank: int, store: Path, ends: bool) -> Any:
    model = network()
    optimizer = SGD(model.parameters(), lr=0.1)
    dist.barrier()
    run = nbp.watch(model, optimizer, store, [])
    dist.barrier()  # what was published before rank 0 watched is of an earlier job
    run.controls.edit_rule("rank_stands_still", seconds=-1.0)
    for _ in range(3):
        (model(batch(0)) - 1).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    run.flush()
    if ends and rank == 1:
        run.close()
    dist.barrier()
    if rank == 0:
        for _ in range(4):
            (model(batch(0)) - 1).square().mean().backward()
            optimizer.step()
        run.close()
    dist.barrier()
    run.close()
    return [one[3] for one in said_by(run) if one[0] == "rank_stands_still"]


@pytest.mark.parametrize("ends", [False, True])
def test_a_rank_that_stands_still_is_named(ends: bool, pair: Pair, tmp_path: Path) -> None:
    first, second = pair.run(stop_early, tmp_path / "run.zarr", ends)
    assert second == []
    (text,) = first
    assert ("has ended its run" if ends else "has not moved for") in text
    assert "rank 1 is at step " in text


def wait_for_each_other(rank: int, store: Path, waits: str) -> list[str]:
    """Train some steps, in one of which a rank is late or each waits for the other."""
    model = network()
    optimizer = SGD(model.parameters(), lr=0.1)
    dist.barrier()
    run = nbp.watch(model, optimizer, store, [])
    run.controls.edit_rule("ranks_wait", seconds=1.0)
    told = store.parent / "told"
    sizes = (3, 4)

    def release() -> None:
        """Send what the other one waits for, once it is reported."""
        until = time.monotonic() + 30.0
        while time.monotonic() < until and not told.exists():
            if rank == 0 and any(one.rule == "ranks_wait" for one in run.alerts):
                told.touch()
            time.sleep(0.05)
        dist.send(torch.ones(sizes[1 - rank]), dst=1 - rank)

    dist.barrier()
    for step in range(6):
        (model(batch(step)) - 1).square().mean().backward()
        if step == 3 and waits == "each other":
            thread = threading.Thread(target=release)
            thread.start()
            dist.recv(torch.zeros(sizes[rank]), src=1 - rank)
            thread.join()
        if step == 3 and waits == "a slow rank":
            time.sleep(3.0 * rank)
            dist.barrier()
        optimizer.step()
        optimizer.zero_grad()
    run.flush()
    dist.barrier()
    run.close()
    return [one.text for one in (*run.alerts, *run.remarks) if one.rule == "ranks_wait"]


@pytest.mark.parametrize("waits", ["each other", "a slow rank", "no one"])
def test_ranks_that_wait_for_each_other_are_named_with_their_calls_and_lines(
    waits: str, pair: Pair, tmp_path: Path
) -> None:
    first, second = pair.run(wait_for_each_other, tmp_path / "run.zarr", waits)
    assert second == []
    assert len(first) == (waits == "each other")
    for rank, size in ((0, 3), (1, 4)) if first else ():
        assert f"rank {rank}: recv() of shape ({size},) at test_rank_facts.py:" in first[0]
