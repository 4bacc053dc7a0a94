"""Data parallel training in two processes: gradients are shared, outputs are local."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import AdamW

import notebook_probe as nbp
from notebook_probe.quantities.reduce.stat import Number, Stat, root
from tests.distributed.pair import Pair
from tests.models import floats, loss_of, made, mlp
from tests.probes.parity import differing, everything

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

batch = floats(5, 4)

FORWARD = ["input_norm", "output_norm", "output_grad_norm"]
PARAMETER = ["weight_norm", "grad_norm", "update_ratio"]
PROBES = {
    **dict.fromkeys(("0", "1", "2"), FORWARD),
    **dict.fromkeys(("0.weight", "0.bias", "2.weight", "2.bias"), PARAMETER),
}
Told = dict[tuple[str, str], list[float]]


def given(rank: int, step: int, micro: int = 0) -> Tensor:
    """A batch of its own for every rank, step and micro-batch."""
    return batch(100 * rank + 10 * step + micro)


def size(*tensors: Tensor) -> float:
    parts = [tensor.detach().double().numpy().ravel() for tensor in tensors]
    return float(np.linalg.norm(np.concatenate(parts)))


def oracle(rank: int, steps: int, n_micro: int) -> Told:
    """One process alone takes both ranks' batches in turn and averages their gradients."""
    model = made(mlp)
    optimizer = AdamW(model.parameters(), lr=0.01)
    told: Told = defaultdict(list)
    for step in range(steps):
        mine: dict[str, list[Tensor]] = defaultdict(list)
        total: dict[str, Tensor] = {}
        for each in range(2):
            for micro in range(n_micro):
                x = given(each, step, micro)
                tensors = [x]
                for path in ("0", "1", "2"):
                    tensors.append(model.get_submodule(path)(tensors[-1]))
                    tensors[-1].retain_grad()
                model.zero_grad()
                loss_of(tensors[-1]).backward()
                for name, value in model.named_parameters():
                    assert value.grad is not None
                    total[name] = total.get(name, torch.zeros(())) + value.grad.double()
                for i, path in enumerate(("0", "1", "2")):
                    gradient = tensors[i + 1].grad
                    if each == rank and gradient is not None:
                        mine[path, "input_norm"].append(tensors[i])  # type: ignore[index]
                        mine[path, "output_norm"].append(tensors[i + 1])  # type: ignore[index]
                        mine[path, "output_grad_norm"].append(gradient)  # type: ignore[index]
        for key, parts in mine.items():
            told[key].append(size(*parts))  # type: ignore[index]
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        for name, value in model.named_parameters():
            value.grad = (total[name] / 2).float()
            told[name, "weight_norm"].append(size(value))
            told[name, "grad_norm"].append(size(total[name] / 2))
        optimizer.step()
        for name, value in model.named_parameters():
            change = size(value.detach().double() - before[name].double())
            told[name, "update_ratio"].append(change / size(before[name]))
    return told


def parallel_of(model: nn.Module, bucket_view: bool) -> DistributedDataParallel:
    return DistributedDataParallel(model, gradient_as_bucket_view=bucket_view)


def train(
    rank: int, model: nn.Module, parallel: DistributedDataParallel, steps: int, n_micro: int
) -> dict[str, bytes]:
    optimizer = AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(n_micro - 1):
            with parallel.no_sync():
                loss_of(parallel(given(rank, step, micro))).backward()
        loss_of(parallel(given(rank, step, n_micro - 1))).backward()
        optimizer.step()
    return everything(model, [optimizer])


def train_both(
    rank: int, folder: Path, way: str, ranks: tuple[int, ...], n_micro: int, bucket_view: bool
) -> dict[str, Any]:
    """A twin that nobody watches, then the watched one; what was recorded and what differs."""
    alone, model = made(mlp), made(mlp)
    torch.manual_seed(7)
    left = train(rank, alone, parallel_of(alone, bucket_view), 3, n_micro)
    run = None
    store = folder / f"{rank}.zarr"
    if rank in ranks and way == "before wrapping":
        run = nbp.watch(model, store=store, probes=PROBES)
    parallel = parallel_of(model, bucket_view)
    if rank in ranks and way != "before wrapping":
        watched = parallel if way == "wrapper" else model
        run = nbp.watch(watched, store=store, probes=PROBES)
    torch.manual_seed(7)
    different = differing(left, train(rank, model, parallel, 3, n_micro))
    if run is None:
        return {"different": different, "found": {}}
    data = run.data.load()
    status = run.status()
    run.close()
    return {
        "different": different,
        "modules": data.module.values.tolist(),
        "steps": data.step.values.tolist(),
        "calls": data.calls.sel(module=["0", "1", "2"]).values.tolist(),
        "errors": len(status.errors),
        "problem": status.problem,
        "found": {
            (place, name): data[name].sel(module=place).values
            for place, names in PROBES.items()
            for name in names
        },
    }


def check(told: dict[str, Any], rank: int, n_micro: int) -> None:
    assert told["different"] == []
    assert (told["errors"], told["problem"]) == (0, "")
    assert told["steps"] == [0, 1, 2]
    assert told["calls"] == [[n_micro] * 3] * 3
    expected = oracle(rank, 3, n_micro)
    assert told["found"].keys() == expected.keys()
    for key, values in expected.items():
        np.testing.assert_allclose(told["found"][key], values, rtol=1e-4, err_msg=str(key))


@pytest.mark.parametrize("bucket_view", [False, True])
@pytest.mark.parametrize("way", ["wrapper", "model", "before wrapping"])
def test_gradients_are_the_ones_all_ranks_share_and_outputs_their_own(
    way: str, bucket_view: bool, pair: Pair, tmp_path: Path
) -> None:
    both = pair.run(train_both, tmp_path, way, (0, 1), 1, bucket_view)
    for rank, told in enumerate(both):
        check(told, rank, 1)
        assert not [name for name in told["modules"] if "module" in name]
    first, second = (told["found"] for told in both)
    for name in PROBES:
        for quantity in PARAMETER if "." in name else FORWARD:
            equal = np.array_equal(first[name, quantity], second[name, quantity])
            assert equal is ("." in name), f"{quantity} at {name}"


@pytest.mark.parametrize("n_micro", [2, 3])
def test_micro_batches_without_synchronisation_are_one_step(
    n_micro: int, pair: Pair, tmp_path: Path
) -> None:
    for rank, told in enumerate(pair.run(train_both, tmp_path, "wrapper", (0, 1), n_micro, False)):
        check(told, rank, n_micro)


@pytest.mark.parametrize("watching", [0, 1])
def test_one_rank_may_be_watched_alone(watching: int, pair: Pair, tmp_path: Path) -> None:
    """A probe that called the other rank would wait for it in vain."""
    both = pair.run(train_both, tmp_path, "wrapper", (watching,), 1, False)
    check(both[watching], watching, 1)
    assert both[1 - watching] == {"different": [], "found": {}}


def raw_size(grad_raw_sumsq: Stat) -> Number:
    return root(grad_raw_sumsq.sumsq)


def train_raw(rank: int, folder: Path, n_micro: int) -> dict[str, list[list[float]]]:
    """Recorded beside expected: sizes of the local gradient, and how often it was added to."""
    model, alone = made(mlp), made(mlp)
    alone.load_state_dict(model.state_dict())
    names = [name for name, _ in model.named_parameters()]
    parallel = DistributedDataParallel(model)
    run = nbp.watch(
        model, store=folder / f"{rank}.zarr", probes={name: [raw_size] for name in names}
    )
    optimizer = AdamW(model.parameters(), lr=0.01)
    expected: dict[str, list[float]] = defaultdict(list)
    for step in range(3):
        alone.load_state_dict(model.state_dict())
        alone.zero_grad()
        optimizer.zero_grad()
        for micro in range(n_micro):
            loss_of(alone(given(rank, step, micro))).backward()
        for name, value in alone.named_parameters():
            assert value.grad is not None
            expected[name].append(size(value.grad))
        for micro in range(n_micro - 1):
            with parallel.no_sync():
                loss_of(parallel(given(rank, step, micro))).backward()
        loss_of(parallel(given(rank, step, n_micro - 1))).backward()
        optimizer.step()
    told = {
        name: [run.series(name, "raw_size").values.tolist(), expected[name],
               run.series(name, "accumulations").values.tolist()]
        for name in names
    }  # fmt: skip
    run.close()
    return told


@pytest.mark.parametrize("n_micro", [1, 3])
def test_the_raw_gradient_is_local(n_micro: int, pair: Pair, tmp_path: Path) -> None:
    both = pair.run(train_raw, tmp_path, n_micro)
    for told in both:
        for name, (found, expected, accumulations) in told.items():
            np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=name)
            assert accumulations == [n_micro] * 3
    assert both[0] != both[1]
