"""Weights that are split over processes: each rank records its own part, and asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import AdamW

import notebook_probe as nbp
from notebook_probe.quantities.reduce.stat import Number, Stat
from tests.distributed.pair import Pair
from tests.models import floats, loss_of, made

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

batch = floats(5, 4)
STEPS = 3


def weight_square(weight_sumsq: Stat) -> Number:
    return weight_sumsq.sumsq


def grad_square(grad_sumsq: Stat) -> Number:
    return grad_sumsq.sumsq


def update_square(update_sumsq: Stat) -> Number:
    return update_sumsq.sumsq


SQUARES = [weight_square, grad_square, update_square]
NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]
FORWARD = ["input_norm", "output_norm", "output_grad_norm"]
PLACES = ["0", "1", "2"]


def odd() -> nn.Module:
    """Rows that do not divide by two: one rank has more, or all."""
    return nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 1))


def given(rank: int, step: int) -> Tensor:
    return batch(100 * rank + step)


def square(value: Tensor) -> float:
    return float(value.detach().double().square().sum())


def shard(model: nn.Module) -> None:
    mesh = init_device_mesh("cpu", (2,))
    for path in ("0", "2"):
        fully_shard(model.get_submodule(path), mesh=mesh)
    fully_shard(model, mesh=mesh)


def oracle(rank: int) -> dict[tuple[str, str], list[float]]:
    """One process alone, with whole weights and both ranks' batches."""
    model = made(odd)
    optimizer = AdamW(model.parameters(), lr=0.01)
    told: dict[tuple[str, str], list[float]] = {}

    def add(place: str, quantity: str, value: float) -> None:
        told.setdefault((place, quantity), []).append(value)

    for step in range(STEPS):
        total: dict[str, Tensor] = {}
        for each in range(2):
            model.zero_grad()
            tensors = [given(each, step)]
            for path in PLACES:
                tensors.append(model.get_submodule(path)(tensors[-1]))
                tensors[-1].retain_grad()
            loss_of(tensors[-1]).backward()
            for name, value in model.named_parameters():
                assert value.grad is not None
                total[name] = total.get(name, torch.zeros(())) + value.grad.double() / 2
            if each == rank:
                for i, path in enumerate(PLACES):
                    gradient = tensors[i + 1].grad
                    assert gradient is not None
                    add(path, "input_norm", square(tensors[i]) ** 0.5)
                    add(path, "output_norm", square(tensors[i + 1]) ** 0.5)
                    add(path, "output_grad_norm", square(gradient) ** 0.5)
        before = {name: value.detach().double() for name, value in model.named_parameters()}
        for name, value in model.named_parameters():
            value.grad = total[name].float()
            add(name, "weight_square", square(value))
            add(name, "grad_square", square(total[name]))
        optimizer.step()
        for name, value in model.named_parameters():
            add(name, "update_square", square(value.detach().double() - before[name]))
    return told


def local_bits(model: nn.Module) -> dict[str, bytes]:
    return {
        name: value.to_local().detach().numpy().tobytes()
        for name, value in model.named_parameters()
        if isinstance(value, DTensor)
    }


def train(rank: int, model: nn.Module) -> dict[str, bytes]:
    optimizer = AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model(given(rank, step))).backward()
        optimizer.step()
    return local_bits(model)


def train_sharded(
    rank: int, folder: Path, watched_first: bool, watching: tuple[int, ...]
) -> dict[str, Any]:
    probes: dict[str, list[Any]] = {
        **dict.fromkeys(PLACES, FORWARD),
        **dict.fromkeys(NAMES, SQUARES),
    }
    alone, model = made(odd), made(odd)
    shard(alone)
    left = train(rank, alone)
    run, store = None, folder / f"{rank}.zarr"
    if rank in watching and watched_first:
        run = nbp.watch(model, store=store, probes=probes)
    shard(model)
    if rank in watching and not watched_first:
        run = nbp.watch(model, store=store, probes=probes)
    told: dict[str, Any] = {"equal": left == train(rank, model)}
    if run is not None:
        data = run.data.load()
        told["steps"] = data.step.values.tolist()
        told["errors"] = [(p.module, p.quantity, p.error) for p in run.status().errors]
        told["found"] = {
            (place, getattr(q, "__name__", q)): data[getattr(q, "__name__", q)]
            .sel(module=place)
            .values
            for place, quantities in probes.items()
            for q in quantities
        }
        run.close()
    return told


@pytest.mark.parametrize("watched_first", [True, False])
def test_the_parts_of_all_ranks_make_up_the_whole(
    watched_first: bool, pair: Pair, tmp_path: Path
) -> None:
    both = pair.run(train_sharded, tmp_path, watched_first, (0, 1))
    for rank, told in enumerate(both):
        assert told["equal"]
        assert told["errors"] == []
        assert told["steps"] == list(range(STEPS))
        expected = oracle(rank)
        for place in PLACES:
            for name in FORWARD:
                np.testing.assert_allclose(
                    told["found"][place, name], expected[place, name], rtol=1e-4, err_msg=place
                )
    whole = oracle(0)
    for name in NAMES:
        for quantity in ("weight_square", "grad_square", "update_square"):
            parts = np.nansum([told["found"][name, quantity] for told in both], axis=0)
            np.testing.assert_allclose(
                parts, whole[name, quantity], rtol=1e-4, err_msg=f"{quantity} of {name}"
            )
    split = [told["found"]["0.weight", "weight_square"][0] for told in both]
    assert min(split) > 0, "both have a part of it"


@pytest.mark.parametrize("watching", [0, 1])
def test_a_rank_that_is_watched_alone_asks_the_other_for_nothing(
    watching: int, pair: Pair, tmp_path: Path
) -> None:
    """The size of a split weight, asked of torch, is a collective: the other would be missing."""
    both = pair.run(train_sharded, tmp_path, False, (watching,))
    assert all(told["equal"] for told in both)
    assert both[watching]["steps"] == list(range(STEPS))
    assert both[watching]["errors"] == []


def weight_share(weight: Tensor) -> Tensor:
    """Largest part of the total: of a DTensor, each of both is a collective."""
    return weight.abs().amax() / weight.abs().sum()


def update_share(update: Tensor) -> Tensor:
    return update.abs().amax() / update.abs().sum()


def grad_share(grad: Tensor) -> Tensor:
    return grad.abs().amax() / grad.abs().sum()


def state_share(state_exp_avg: Tensor) -> Tensor:
    return state_exp_avg.abs().amax() / state_exp_avg.abs().sum()


SHARES = {
    "weight": weight_share,
    "update": update_share,
    "grad": grad_share,
    "state": state_share,
}


def train_with_own_quantities(rank: int, folder: Path) -> dict[str, Any]:
    """Watched on the first rank alone, beside a twin whose local parts are read by hand."""
    alone, model = made(odd), made(odd)
    shard(alone)
    shard(model)
    name, expected = "0.weight", []
    optimizer = AdamW(alone.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(alone(given(rank, step))).backward()
        before, gradient = (local(t) for t in (alone.get_parameter(name),
                                               alone.get_parameter(name).grad))  # fmt: skip
        optimizer.step()
        change = local(alone.get_parameter(name)) - before
        average = local(optimizer.state[alone.get_parameter(name)]["exp_avg"])
        parts = (before, change, gradient, average)
        expected.append([abs(x).max() / abs(x).sum() for x in parts])
    if rank == 1:
        train(rank, model)
        return {}
    run = nbp.watch(model, store=folder / "r.zarr", probes={name: list(SHARES.values())})
    train(rank, model)
    errors = [probe.error for probe in run.status().errors]
    found = [run.data[f"{feature}_share"].sel(module=name).values for feature in SHARES]
    run.close()
    return {"found": np.transpose(found), "expected": expected, "errors": errors}


def local(tensor: Tensor | None) -> Any:
    assert isinstance(tensor, DTensor)
    return tensor.to_local().detach().double().numpy().copy()


def test_an_own_quantity_is_given_this_ranks_part(pair: Pair, tmp_path: Path) -> None:
    told, _ = pair.run(train_with_own_quantities, tmp_path)
    assert told["errors"] == []
    np.testing.assert_allclose(told["found"], told["expected"], rtol=1e-5)
